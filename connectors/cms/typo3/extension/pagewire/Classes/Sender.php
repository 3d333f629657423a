<?php

declare(strict_types=1);

namespace Pagewire\Typo3;

use TYPO3\CMS\Core\Locking\Exception\LockAcquireWouldBlockException;
use TYPO3\CMS\Core\Locking\LockFactory;
use TYPO3\CMS\Core\Locking\LockingStrategyInterface;

/**
 * Sends the addresses of waiting pages. One process at a time.
 */
final class Sender
{
    // Pages in one request, with two addresses at most: Pagewire visits 100 addresses at most, half a second apart.
    private const PAGES = 40;

    public function __construct(
        private readonly Outbox $outbox,
        private readonly Pages $pages,
        private readonly Gateway $gateway,
        private readonly LockFactory $locks,
    ) {}

    /**
     * Sends until nothing waits, the time is over, or the website cannot be visited.
     *
     * @throws Refusal
     */
    public function drain(float $end): void
    {
        $lock = $this->locks->createLocker('pagewire', LockingStrategyInterface::LOCK_CAPABILITY_EXCLUSIVE | LockingStrategyInterface::LOCK_CAPABILITY_NOBLOCK);
        try {
            $lock->acquire(LockingStrategyInterface::LOCK_CAPABILITY_EXCLUSIVE | LockingStrategyInterface::LOCK_CAPABILITY_NOBLOCK);
        } catch (LockAcquireWouldBlockException) {
            return;
        }
        try {
            do {
                $sent = $this->step();
            } while ($sent && microtime(true) < $end);
        } finally {
            $lock->release();
        }
    }

    /**
     * Sends once. Returns how many rows wait no more.
     */
    private function step(): int
    {
        $rows = $this->outbox->next(self::PAGES);
        // The address of a page that got another one is sent, too: what it was is gone there.
        $current = array_map(fn(array $row): string => $this->pages->address((int)$row['page'], (int)$row['language']), $rows);
        $both = array_map(fn(array $row, string $now): array => array_filter(array_unique([$row['address'], $now])), $rows, $current);
        $addresses = array_unique(array_merge(...$both));
        $outcomes = $addresses ? $this->gateway->changed($addresses) : [];
        $settled = 0;
        foreach ($rows as $at => $row) {
            $failed = array_filter($both[$at], fn(string $address): bool => ($outcomes[$address]['state'] ?? 'failed') === 'failed');
            if ($failed) {
                $this->outbox->fail($row, (string)($outcomes[reset($failed)]['detail'] ?? ''));
                continue;
            }
            $now = $outcomes[$current[$at]] ?? null;
            $this->outbox->settle($row, $current[$at], $now && $now['state'] === 'refused' ? (string)$now['detail'] : '');
            $settled++;
        }
        return $settled;
    }
}
