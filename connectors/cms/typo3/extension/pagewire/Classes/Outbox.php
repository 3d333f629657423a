<?php

declare(strict_types=1);

namespace Pagewire\Typo3;

use Doctrine\DBAL\Exception\UniqueConstraintViolationException;
use TYPO3\CMS\Core\Database\Connection;
use TYPO3\CMS\Core\Database\ConnectionPool;

/**
 * Which pages changed and are not sent yet.
 *
 * One row for each page and language, however often the page is saved. A row stops waiting only when no mark came while
 * its address was sent.
 */
final class Outbox
{
    public const SAVE = 1;
    public const BULK = 2;
    private const TABLE = 'tx_pagewire_page';

    public function __construct(private readonly ConnectionPool $connections) {}

    public function mark(int $page, int $language, int $lane = self::SAVE): void
    {
        if ($this->touch($page, $language, $lane)) {
            return;
        }
        try {
            $this->connection()->insert(self::TABLE, ['page' => $page, 'language' => $language, 'waiting' => $lane]);
        } catch (UniqueConstraintViolationException) {
            $this->touch($page, $language, $lane); // Another request was first.
        }
    }

    /**
     * The rows that go next; saves first, and behind all others the rows that failed, so that these block none. Of
     * those the first differs from call to call, so that they do not block each other either.
     */
    public function next(int $limit): array
    {
        $rows = $this->waiting("problem = ''", $limit, 0);
        $room = $limit - count($rows);
        if ($room === 0) {
            return $rows;
        }
        $failed = (int)$this->connection()->fetchOne('SELECT COUNT(*) FROM ' . self::TABLE . " WHERE waiting <> 0 AND problem <> ''");
        $from = $failed > $room ? max(0, random_int(1 - $room, $failed - 1)) : 0;
        return [...$rows, ...$this->waiting("problem <> ''", $room, $from)];
    }

    /**
     * Ends the wait of a row, unless a mark came meanwhile.
     */
    public function settle(array $row, string $address, string $problem): void
    {
        $this->change($row, ['waiting' => 0, 'address' => $address, 'problem' => mb_substr($problem, 0, 500)]);
    }

    /**
     * Keeps why a row still waits.
     */
    public function fail(array $row, string $problem): void
    {
        $this->change($row, ['problem' => mb_substr($problem, 0, 500)]);
    }

    public function length(): int
    {
        return (int)$this->connection()->fetchOne('SELECT COUNT(*) FROM ' . self::TABLE . ' WHERE waiting <> 0');
    }

    /**
     * Pages that are not sent or not taken, with the reason.
     */
    public function refused(int $limit): array
    {
        return $this->connection()->fetchAllAssociative(
            'SELECT * FROM ' . self::TABLE . " WHERE problem <> '' ORDER BY page, language LIMIT " . $limit,
        );
    }

    private function waiting(string $which, int $limit, int $from): array
    {
        return $this->connection()->fetchAllAssociative(
            'SELECT * FROM ' . self::TABLE . " WHERE waiting <> 0 AND $which ORDER BY waiting, page, language LIMIT $limit OFFSET $from",
        );
    }

    private function touch(int $page, int $language, int $lane): bool
    {
        return (bool)$this->connection()->executeStatement(
            'UPDATE ' . self::TABLE . " SET revision = revision + 1, problem = '', waiting = CASE WHEN waiting = 1 THEN 1 ELSE ? END"
            . ' WHERE page = ? AND language = ?',
            [$lane, $page, $language],
        );
    }

    private function change(array $row, array $fields): void
    {
        $key = ['page' => $row['page'], 'language' => $row['language'], 'revision' => $row['revision']];
        $this->connection()->update(self::TABLE, $fields, $key);
    }

    private function connection(): Connection
    {
        return $this->connections->getConnectionForTable(self::TABLE);
    }
}
