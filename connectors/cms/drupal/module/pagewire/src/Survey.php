<?php

namespace Drupal\pagewire;

/**
 * Answers `pagewire import` and `pagewire reconcile`: all public pages with their revisions, and pages by id.
 *
 * Each page is rendered and compared with the version that Pagewire has. This finds changes without a save of the
 * page: SQL, a renamed term, another display.
 */
final class Survey {

  public const NODES = 50; // Loaded together.
  public const SECONDS = 10.0; // For one answer: web servers usually end a process after 30.
  public const LIMIT = 4 * 1024 * 1024; // Bytes of content in an answer, before the last page.

  public function __construct(
    private readonly Outbox $outbox,
    private readonly Pages $pages,
  ) {}

  /**
   * Public pages after a node; at last the next node, or the end.
   */
  public function inventory(int $after): \Generator {
    $end = microtime(TRUE) + self::SECONDS;
    if (!$after) {
      $this->markGone();
    }
    do {
      [$pages, $after] = $this->pages->after($after, self::NODES);
      foreach ($pages as $page) {
        $row = $this->outbox->row($this->pages->id($page), $this->pages->lang($page));
        try {
          $document = $this->pages->document($page);
          $revision = $this->revision($row, self::digest($document));
        }
        catch (\Throwable) {
          $revision = (int) $row->revision; // The page is there, and must not count as deleted.
        }
        yield ['id' => $row->page_id, 'lang' => $row->lang, 'revision' => $revision];
      }
    } while ($after && microtime(TRUE) < $end);
    yield $after ? ['next' => (string) $after] : ['end' => TRUE];
  }

  /**
   * Pages by `LANG:ID`. What is not public is left out; what does not fit is named, to be asked for again.
   */
  public function documents(array $wanted): \Generator {
    $size = 0;
    foreach ($wanted as $key) {
      [$lang, $page_id] = explode(':', $key, 2) + [1 => ''];
      $name = ['id' => $page_id, 'lang' => $lang];
      if ($size > self::LIMIT) {
        yield ['later' => $name];
        continue;
      }
      if (!$this->pages->find($page_id, $lang)) {
        continue;
      }
      $row = $this->outbox->row($page_id, $lang); // The revision is read before the page, so it is never newer.
      if (!$page = $this->pages->find($page_id, $lang)) {
        continue;
      }
      try {
        $document = $this->pages->document($page);
      }
      catch (\Throwable $error) {
        yield ['problem' => $name + ['reason' => mb_substr($error->getMessage(), 0, 500)]];
        continue;
      }
      $size += strlen($document['content']);
      $digest = self::digest($document);
      $revision = $this->revision($row, $digest);
      $this->outbox->expose($row, $digest);
      yield ['page' => $document + ['revision' => $revision]];
    }
  }

  /**
   * What tells two versions of a page apart.
   */
  public static function digest(array $document): string {
    unset($document['changed_at']);
    return hash('sha256', serialize($document));
  }

  /**
   * The revision of a rendered page: a new one if it differs from the version that Pagewire has and does not wait.
   */
  private function revision(object $row, string $digest): int {
    while (!(int) $row->waiting && $row->digest !== $digest && !$this->outbox->renew($row, $digest)) {
      $row = $this->outbox->row($row->page_id, $row->lang);
    }
    return (int) $row->revision;
  }

  /**
   * Marks pages that Pagewire may have and that are not public any more, as after a change of a permission.
   */
  private function markGone(): void {
    $id = $lang = '';
    while ($rows = $this->outbox->delivered($id, $lang, 500)) {
      foreach ($rows as $row) {
        [$id, $lang] = [$row->page_id, $row->lang];
        if (!$this->pages->find($id, $lang)) {
          $this->outbox->mark($id, []);
        }
      }
    }
  }

}
