<?php

namespace Drupal\pagewire\Controller;

use Drupal\Core\DependencyInjection\ContainerInjectionInterface;
use Drupal\pagewire\PagewireSettings;
use Drupal\pagewire\Signature;
use Drupal\pagewire\Survey;
use Drupal\pagewire\Visitor;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

/**
 * Answers Pagewire's signed requests.
 */
final class SurveyController implements ContainerInjectionInterface {

  private const MOST = 50; // Pages of a request.

  public function __construct(
    private readonly PagewireSettings $settings,
    private readonly Survey $survey,
    private readonly Visitor $visitor,
  ) {}

  /**
   * {@inheritdoc}
   */
  public static function create(ContainerInterface $container): self {
    return new self($container->get('pagewire.settings'), $container->get('pagewire.survey'), $container->get('pagewire.visitor'));
  }

  /**
   * All public pages after the node `after`.
   */
  public function inventory(Request $request): Response {
    $after = (string) $request->query->get('after');
    return $this->answer($request, 'inventory', fn () => $this->survey->inventory((int) $after), preg_match('/\A[0-9]{0,18}\z/', $after));
  }

  /**
   * Pages by `page=LANG:ID`, which may be repeated.
   */
  public function pages(Request $request): Response {
    preg_match_all('/(?:^|&)page=([^&]*)/', $this->query($request), $given);
    $wanted = array_map(rawurldecode(...), $given[1]);
    return $this->answer($request, 'pages', fn () => $this->survey->documents($wanted), count($wanted) <= self::MOST);
  }

  /**
   * NDJSON: the time, then the lines. It is not streamed, so that an error never cuts a list short.
   */
  private function answer(Request $request, string $name, callable $lines, bool $valid): Response {
    if (!$this->settings->ready()) {
      return $this->problem(404, 'not-configured', 'Pagewire is not set up here');
    }
    $fault = Signature::fault($this->settings->secret(), $request->headers->get(...), "GET $name?" . $this->query($request));
    if ($fault !== NULL) {
      return $this->problem(401, 'bad-signature', $fault);
    }
    if (!$valid) {
      return $this->problem(400, 'bad-query', 'no such pages');
    }
    $body = json_encode(['now' => (int) floor(microtime(TRUE) * 1000)]) . "\n";
    $this->visitor->run(function () use ($lines, &$body): void {
      foreach ($lines() as $line) {
        $body .= json_encode($line, JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR) . "\n";
      }
    });
    return new Response($body, 200, ['Content-Type' => 'application/x-ndjson', 'Cache-Control' => 'no-store']);
  }

  /**
   * The query as it was sent: the signature is of its bytes.
   */
  private function query(Request $request): string {
    return (string) $request->server->get('QUERY_STRING');
  }

  private function problem(int $status, string $code, string $detail): Response {
    $body = ['status' => $status, 'code' => $code, 'detail' => $detail];
    return new JsonResponse($body, $status, ['Content-Type' => 'application/problem+json', 'Cache-Control' => 'no-store']);
  }

}
