<?php

namespace Drupal\pagewire;

use Drupal\Core\Lock\LockBackendInterface;
use Drupal\Core\State\StateInterface;

/**
 * Delivers what waits. One process at a time; what fails is kept, and tried later and later.
 */
final class Sender {

  private const LOCK = 'pagewire';
  private const STATE = 'pagewire.state';
  private const FILL = 'pagewire.fill';
  private const ROWS = 200; // Pages in a delivery; Pagewire takes 500.
  private const BYTES = 2_000_000; // Of a delivery, unless a single page is larger.
  private const LONGEST = 300; // Seconds between two tries.
  private const PATIENT = 3600; // Seconds, when Pagewire asks for them.
  private const TRIES = 3; // Renderings of a page that end the process.

  public function __construct(
    private readonly PagewireSettings $settings,
    private readonly Outbox $outbox,
    private readonly Pages $pages,
    private readonly Visitor $visitor,
    private readonly Gateway $gateway,
    private readonly LockBackendInterface $lock,
    private readonly StateInterface $state,
  ) {}

  /**
   * Delivers until nothing waits, the time is over, or a delivery fails.
   */
  public function drain(float $seconds): void {
    $end = microtime(TRUE) + $seconds;
    // A mark that comes while another process finishes must not wait for cron, so look again after the unlock.
    while ($this->hasWork() && microtime(TRUE) < $end && $this->lock->acquire(self::LOCK, $seconds + 120)) {
      try {
        $this->visitor->run(function () use ($end): void {
          $most = self::ROWS;
          while ($most > 0 && $this->hasWork() && microtime(TRUE) < $end) {
            $most = $this->step($most, $end);
          }
        });
      }
      finally {
        $this->lock->release(self::LOCK);
      }
    }
  }

  /**
   * Sends all public pages in the bulk lane, and what Pagewire may have besides.
   */
  public function sendEverything(): void {
    $this->outbox->markAll();
    $this->state->set(self::FILL, 0);
  }

  /**
   * How it goes: `problem`, `until`, `tries`, `delivered` (a time, 0: never).
   */
  public function state(): array {
    return $this->state->get(self::STATE, []) + ['problem' => '', 'until' => 0, 'tries' => 0, 'delivered' => 0];
  }

  /**
   * Tries again at once.
   */
  public function forgive(): void {
    $this->state->delete(self::STATE);
  }

  private function hasWork(): bool {
    return $this->settings->ready() && $this->state()['until'] <= time()
      && ($this->outbox->length() || $this->state->get(self::FILL) !== NULL);
  }

  /**
   * Delivers once. Returns how many pages the next delivery may have; 0: it failed.
   */
  private function step(int $most, float $end): int {
    $rows = $this->outbox->next(Outbox::SAVE, $most) ?: $this->outbox->next(Outbox::BULK, $most);
    if (!$rows) {
      $this->takeIn();
      return $most;
    }
    [$sent, $body] = $this->delivery($rows, $end);
    if (!$sent) {
      return $most;
    }
    $answer = $this->gateway->post($body, count($sent), (int) $rows[0]->waiting === Outbox::BULK);
    if ($answer['problem'] === '') {
      foreach ($sent as $at => $row) {
        $this->outbox->settle($row, $answer['errors'][$at + 1] ?? '', !empty($row->gone));
      }
      $this->state->set(self::STATE, ['delivered' => time()]);
      return $most;
    }
    if ($answer['status'] === 413 && count($sent) > 1) {
      return (int) ceil(count($sent) / 2);
    }
    if ($answer['status'] === 413) {
      $this->outbox->settle($sent[0], $answer['problem']); // The others must not wait for this page.
      return $most;
    }
    $this->failed($answer);
    return 0;
  }

  private function failed(array $answer): void {
    $state = $this->state();
    $tries = $state['tries'] + 1;
    $pause = $answer['retry_after'] ? min(self::PATIENT, $answer['retry_after']) : min(self::LONGEST, 2 ** min(9, $tries));
    $this->state->set(self::STATE, ['tries' => $tries, 'until' => time() + $pause, 'problem' => $answer['problem']] + $state);
  }

  /**
   * The rows that go together, and their lines.
   */
  private function delivery(array $rows, float $end): array {
    $sent = [];
    $body = '';
    foreach ($rows as $row) {
      $line = $this->line($row);
      if ($line !== NULL && $sent && strlen($body) + strlen($line) > self::BYTES) {
        break;
      }
      if ($line !== NULL) {
        $sent[] = $row;
        $body .= "$line\n";
      }
      if (microtime(TRUE) > $end) {
        break;
      }
    }
    return [$sent, $body];
  }

  /**
   * A line about the page as it is at this moment; NULL: there is nothing to send.
   */
  private function line(object $row): ?string {
    $key = ['id' => $row->page_id, 'lang' => $row->lang, 'revision' => (int) $row->revision];
    try {
      if ($this->outbox->begin($row) > self::TRIES) {
        throw new \RuntimeException('its rendering ends the process');
      }
      if (!$node = $this->pages->find($row->page_id, $row->lang)) {
        if ($row->digest === '') { // Pagewire never had it.
          $this->outbox->settle($row);
          return NULL;
        }
        $this->outbox->expose($row, $row->digest);
        $row->gone = TRUE; // Its digest stays until Pagewire has the delete: without one, no delete is sent.
        return self::json(['op' => 'delete', 'page' => $key]);
      }
      $document = $this->pages->document($node);
      $this->outbox->expose($row, Survey::digest($document));
      return self::json(['op' => 'upsert', 'page' => $document + $key]);
    }
    catch (\Throwable $error) {
      $this->outbox->settle($row, 'This page cannot be rendered: ' . $error->getMessage());
      return NULL;
    }
  }

  /**
   * Queues the next pages of sending everything.
   */
  private function takeIn(): void {
    [$pages, $last] = $this->pages->after((int) $this->state->get(self::FILL), self::ROWS);
    foreach ($pages as $page) {
      $row = $this->outbox->row($this->pages->id($page), $this->pages->lang($page));
      if ($row->digest === '') { // The others were marked at once.
        $this->outbox->mark($row->page_id, [$row->lang], Outbox::BULK);
      }
    }
    $last ? $this->state->set(self::FILL, $last) : $this->state->delete(self::FILL);
  }

  private static function json(array $line): string {
    return json_encode($line, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR);
  }

}
