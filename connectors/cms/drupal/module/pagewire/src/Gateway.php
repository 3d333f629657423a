<?php

namespace Drupal\pagewire;

use GuzzleHttp\ClientInterface;
use GuzzleHttp\Exception\GuzzleException;

/**
 * Signed deliveries to Pagewire, and what its answers mean.
 */
final class Gateway {

  private const TIMEOUT = 30; // Seconds.
  private const LARGEST = 1_000_000; // Bytes of an answer that are read.

  public function __construct(
    private readonly ClientInterface $http,
    private readonly PagewireSettings $settings,
  ) {}

  /**
   * Delivers NDJSON; an empty body tests the connection.
   *
   * @return array
   *   `status` (0: no answer), `problem` (empty: Pagewire accounted for all lines), `errors` (number of a line, from 1
   *   => why it is refused), `retry_after` in seconds.
   */
  public function post(string $body, int $lines, bool $bulk = FALSE): array {
    $url = $this->settings->text('url') . '/v1/sites/' . rawurlencode($this->settings->text('site')) . '/webhooks/' . rawurlencode($this->settings->text('connector'));
    try {
      $answer = $this->http->request('POST', $url, [
        'body' => $body,
        'headers' => ['Content-Type' => 'application/x-ndjson', 'User-Agent' => 'Pagewire-Drupal']
          + ($bulk ? ['Pagewire-Lane' => 'bulk'] : []) + Signature::headers($this->settings->secret(), $body),
        'allow_redirects' => FALSE, // What is signed for one server is not for another.
        'http_errors' => FALSE,
        'timeout' => self::TIMEOUT,
      ]);
      $data = json_decode($answer->getBody()->read(self::LARGEST), TRUE);
    }
    catch (GuzzleException | \RuntimeException $error) {
      return ['status' => 0, 'problem' => 'Pagewire does not answer: ' . $error->getMessage(), 'errors' => [], 'retry_after' => 0];
    }
    $data = is_array($data) ? $data : [];
    return [
      'status' => $answer->getStatusCode(),
      'problem' => $this->problem($answer->getStatusCode(), $data, $lines),
      'errors' => $this->errors($data),
      'retry_after' => max(0, (int) $answer->getHeaderLine('Retry-After')),
    ];
  }

  private function problem(int $status, array $data, int $lines): string {
    if ($status === 200) {
      $counts = array_map(fn (string $name) => $data[$name] ?? NULL, ['accepted', 'rejected', 'superseded']);
      $accounted = $counts === array_filter($counts, 'is_int') && array_sum($counts) === $lines;
      return $accounted ? '' : 'Something answers at this address, but it is not Pagewire.';
    }
    $code = is_string($data['code'] ?? NULL) ? $data['code'] : '';
    return match (TRUE) {
      $status === 401 => 'Pagewire refuses the signature (401): the secret is not the one in pagewire.yaml, or the clocks differ.',
      $status === 404 && $code === 'unknown-connector' => 'Pagewire has no such connector for this site (404): compare Site and Connector with pagewire.yaml.',
      $status === 404 => 'There is a server at this address, but no Pagewire (404).',
      $status === 413 => 'Pagewire finds the delivery too large (413).',
      $status === 429, $status === 503 => "Pagewire cannot take anything at the moment ($status). Everything is kept and sent later.",
      $status >= 300 && $status < 400 => "This address redirects to another one ($status): enter that one.",
      default => "Pagewire answered with status $status.",
    };
  }

  private function errors(array $data): array {
    $errors = [];
    foreach (is_array($data['errors'] ?? NULL) ? $data['errors'] : [] as $error) {
      if (is_array($error) && is_int($error['line'] ?? NULL)) {
        $errors[$error['line']] = strip_tags(($error['code'] ?? '') . ': ' . ($error['message'] ?? ''));
      }
    }
    return $errors;
  }

}
