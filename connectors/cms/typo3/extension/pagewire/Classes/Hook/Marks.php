<?php

declare(strict_types=1);

namespace Pagewire\Typo3\Hook;

use Pagewire\Typo3\Outbox;
use Pagewire\Typo3\Pages;
use TYPO3\CMS\Core\DataHandling\DataHandler;

/**
 * Marks pages that change.
 *
 *     save ─▶ mark (a row) ─▶ pagewire:send ─▶ Pagewire ─▶ visits the address without a login, as visitors do
 *
 * A mark says that a page changed, not how, and a mark too many does no harm: what Pagewire gets is what visitors see.
 */
final class Marks
{
    // What decides who sees a page, and with extendToSubpages those below it.
    private const ACCESS = ['hidden', 'starttime', 'endtime', 'fe_group', 'extendToSubpages'];

    public function __construct(
        private readonly Outbox $outbox,
        private readonly Pages $pages,
    ) {}

    /**
     * The cache of a record's page was cleared.
     */
    public function cacheCleared(array $parameters): void
    {
        if (isset($parameters['table'])) { // Else all caches were, by hand or by a command.
            $this->mark([(int)$parameters['uid_page']]);
        }
    }

    /**
     * A record was moved to the top of a page. The cache of the page that it left is not cleared.
     */
    public function moveRecord_firstElementPostProcess(string $table, mixed $uid, mixed $target, array $before): void
    {
        $this->mark([(int)($before['pid'] ?? 0)]);
    }

    /**
     * A record was moved behind another one.
     */
    public function moveRecord_afterAnotherElementPostProcess(string $table, mixed $uid, mixed $target, mixed $other, array $before): void
    {
        $this->mark([(int)($before['pid'] ?? 0)]);
    }

    public function processDatamap_afterDatabaseOperations(string $status, string $table, mixed $id, array $fields, DataHandler $handler): void
    {
        if ($table === 'pages' && $status === 'update' && array_intersect(self::ACCESS, array_keys($fields))) {
            $this->mark($this->pages->below((int)$id));
        }
    }

    public function processCmdmap_postProcess(string $command, string $table, mixed $id): void
    {
        if ($table === 'pages' && $command === 'move') {
            $this->mark($this->pages->below((int)$id));
        }
    }

    private function mark(array $pages): void
    {
        foreach (array_unique($pages) as $page) {
            foreach ($this->pages->languages($page) as $language) {
                $this->outbox->mark($page, (int)$language);
            }
        }
    }
}
