<?php

namespace Drupal\pagewire;

/**
 * Signatures in both directions by Standard Webhooks (https://www.standardwebhooks.com).
 *
 *     signature = v1,BASE64(HMAC-SHA256(key, "{webhook-id}.{webhook-timestamp}." + content))
 *
 * The content is the body, or `GET NAME?QUERY` for a GET.
 */
final class Signature {

  public const WINDOW = 300; // Seconds either way.
  private const PREFIX = 'whsec_';
  private const SHORTEST_KEY = 24; // Bytes.
  private const LONGEST = 1000; // Characters of a header.
  private const MOST = 8; // Signatures in a header.

  /**
   * The key of a secret; NULL: it is none.
   */
  public static function key(string $secret): ?string {
    if (!str_starts_with($secret, self::PREFIX)) {
      return NULL;
    }
    $key = base64_decode(substr($secret, strlen(self::PREFIX)), TRUE);
    return $key === FALSE || strlen($key) < self::SHORTEST_KEY ? NULL : $key;
  }

  /**
   * The headers of a delivery.
   */
  public static function headers(string $secret, string $content): array {
    $id = 'msg_' . bin2hex(random_bytes(16));
    $timestamp = (string) time();
    return [
      'webhook-id' => $id,
      'webhook-timestamp' => $timestamp,
      'webhook-signature' => self::sign($secret, $id, $timestamp, $content),
    ];
  }

  /**
   * Why a request is not signed with our secret; NULL: it is.
   *
   * @param string $secret
   *   Ours.
   * @param callable $header
   *   Gives the text of a header by its name, or NULL.
   * @param string $content
   *   What should be signed.
   */
  public static function fault(string $secret, callable $header, string $content): ?string {
    [$id, $timestamp, $signatures] = array_map(
      fn (string $name): string => (string) $header($name),
      ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
    );
    if ($id === '' || $timestamp === '' || $signatures === '') {
      return 'the signature is missing';
    }
    if (max(strlen($id), strlen($timestamp), strlen($signatures)) > self::LONGEST || !preg_match('/\A[0-9]{1,12}\z/', $timestamp)) {
      return 'the signature is wrong';
    }
    if (abs(time() - (int) $timestamp) > self::WINDOW) {
      return 'the signature is too old, or the clocks differ';
    }
    $right = self::sign($secret, $id, $timestamp, $content);
    foreach (array_slice(explode(' ', $signatures), 0, self::MOST) as $given) {
      if (hash_equals($right, $given)) {
        return NULL;
      }
    }
    return 'the signature is wrong';
  }

  private static function sign(string $secret, string $id, string $timestamp, string $content): string {
    return 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$content", (string) self::key($secret), TRUE));
  }

}
