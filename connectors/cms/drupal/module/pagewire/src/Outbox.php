<?php

namespace Drupal\pagewire;

use Drupal\Component\Datetime\TimeInterface;
use Drupal\Core\Database\Connection;

/**
 * Which pages changed and are not delivered yet.
 *
 * One row for each page and language. Ten saves of a waiting page are one row, and its revision grows with each, also
 * when the clock is put back. A row stops waiting only when Pagewire has confirmed the revision that it has.
 */
final class Outbox {

  public const DONE = 0;
  public const SAVE = 1;
  public const BULK = 2;

  /**
   * Whether this request marked a page.
   */
  public bool $touched = FALSE;

  public function __construct(
    private readonly Connection $database,
    private readonly TimeInterface $time,
  ) {}

  /**
   * Marks a page in all languages that are known, and in the given ones.
   */
  public function mark(string $page_id, array $langs, int $lane = self::SAVE): void {
    $now = $this->now();
    $known = $this->database->query('SELECT lang FROM {pagewire_page} WHERE page_id = :id', [':id' => $page_id])->fetchCol();
    foreach (array_unique([...$langs, ...$known]) as $lang) {
      $this->database->merge('pagewire_page')
        ->keys(['page_id' => $page_id, 'lang' => $lang])
        ->insertFields(['page_id' => $page_id, 'lang' => $lang, 'revision' => $now, 'waiting' => $lane])
        ->updateFields(['tries' => 0, 'problem' => ''])
        ->expression('revision', 'CASE WHEN revision >= :now1 THEN revision + 1 ELSE :now2 END', [':now1' => $now, ':now2' => $now])
        ->expression('waiting', 'CASE WHEN waiting = 1 THEN 1 ELSE :lane END', [':lane' => $lane])
        ->execute();
      $this->touched = TRUE;
    }
  }

  /**
   * Marks everything that Pagewire may have, in the bulk lane.
   */
  public function markAll(): void {
    $now = $this->now();
    $this->database->update('pagewire_page')
      ->fields(['tries' => 0, 'problem' => '', 'waiting' => self::BULK])
      ->expression('revision', 'CASE WHEN revision >= :now1 THEN revision + 1 ELSE :now2 END', [':now1' => $now, ':now2' => $now])
      ->condition('waiting', self::SAVE, '<>')
      ->execute();
  }

  /**
   * What goes next, the oldest first.
   */
  public function next(int $lane, int $limit): array {
    return $this->database->select('pagewire_page', 'p')->fields('p')->condition('waiting', $lane)
      ->orderBy('revision')->orderBy('page_id')->orderBy('lang')->range(0, $limit)->execute()->fetchAll();
  }

  /**
   * The row of a page, which is made if it is missing.
   */
  public function row(string $page_id, string $lang): object {
    $find = fn () => $this->database->select('pagewire_page', 'p')->fields('p')
      ->condition('page_id', $page_id)->condition('lang', $lang)->execute()->fetchObject();
    if (!$row = $find()) {
      $this->database->merge('pagewire_page')->keys(['page_id' => $page_id, 'lang' => $lang])
        ->insertFields(['page_id' => $page_id, 'lang' => $lang, 'revision' => $this->now()])
        ->updateFields(['page_id' => $page_id])->execute();
      $row = $find();
    }
    return $row;
  }

  /**
   * Pages that Pagewire may have and that do not wait, after a key.
   */
  public function delivered(string $page_id, string $lang, int $limit): array {
    return $this->database->query(
      "SELECT page_id, lang FROM {pagewire_page} WHERE waiting = 0 AND digest <> '' AND (page_id > :id1 OR (page_id = :id2 AND lang > :lang)) ORDER BY page_id, lang LIMIT $limit",
      [':id1' => $page_id, ':id2' => $page_id, ':lang' => $lang],
    )->fetchAll();
  }

  /**
   * Counts a rendering before it begins: one that ends the process is not begun for ever.
   */
  public function begin(object $row): int {
    $this->change($row, ['tries' => $row->tries + 1]);
    return ++$row->tries;
  }

  /**
   * Keeps what Pagewire is about to have, after a rendering that did not end the process.
   */
  public function expose(object $row, string $digest): void {
    $this->change($row, ['digest' => $digest, 'tries' => 0]);
  }

  /**
   * Gives a page that does not wait a new revision. FALSE: a mark came first.
   */
  public function renew(object $row, string $digest): bool {
    $revision = max($row->revision + 1, $this->now());
    if (!$this->change($row, ['revision' => $revision, 'digest' => $digest])) {
      return FALSE;
    }
    $row->revision = $revision;
    return TRUE;
  }

  /**
   * Ends the wait of a row, unless a mark came meanwhile. `$gone`: Pagewire has deleted the page if there is no problem.
   */
  public function settle(object $row, string $problem = '', bool $gone = FALSE): void {
    $done = ['waiting' => self::DONE, 'tries' => 0, 'problem' => mb_substr($problem, 0, 500)];
    $this->change($row, $done + ($gone && $problem === '' ? ['digest' => ''] : []));
  }

  /**
   * How many pages wait.
   */
  public function length(): int {
    return (int) $this->database->query('SELECT COUNT(*) FROM {pagewire_page} WHERE waiting <> 0')->fetchField();
  }

  /**
   * Pages that are not sent, with the reason.
   */
  public function refused(int $limit): array {
    return $this->database->select('pagewire_page', 'p')->fields('p')->condition('problem', '', '<>')
      ->orderBy('page_id')->range(0, $limit)->execute()->fetchAll();
  }

  /**
   * Milliseconds since 1970.
   */
  public function now(): int {
    return (int) floor($this->time->getCurrentMicroTime() * 1000);
  }

  private function change(object $row, array $fields): bool {
    return (bool) $this->database->update('pagewire_page')->fields($fields)->condition('page_id', $row->page_id)
      ->condition('lang', $row->lang)->condition('revision', $row->revision)->execute();
  }

}
