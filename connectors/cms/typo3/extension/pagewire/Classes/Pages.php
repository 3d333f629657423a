<?php

declare(strict_types=1);

namespace Pagewire\Typo3;

use TYPO3\CMS\Core\Database\ConnectionPool;
use TYPO3\CMS\Core\Exception\SiteNotFoundException;
use TYPO3\CMS\Core\Routing\InvalidRouteArgumentsException;
use TYPO3\CMS\Core\Site\SiteFinder;

/**
 * The records of pages: which languages a page has, what is below it, and its address.
 *
 * Hidden and deleted records count, too: their addresses have to be sent, so that Pagewire sees that they are gone.
 */
final class Pages
{
    private const FIRST_WITHOUT_CONTENT = 200; // Kinds from here on are separators, folders and recyclers.

    public function __construct(
        private readonly ConnectionPool $connections,
        private readonly SiteFinder $sites,
    ) {}

    /**
     * The languages in which a page has a record; none: it is no page that visitors read.
     */
    public function languages(int $page): array
    {
        return $this->connections->getConnectionForTable('pages')->fetchFirstColumn(
            'SELECT DISTINCT sys_language_uid FROM pages WHERE (uid = ? OR (l10n_parent = ? AND sys_language_uid > 0))'
            . ' AND doktype < ? AND t3ver_wsid = 0',
            [$page, $page, self::FIRST_WITHOUT_CONTENT],
        );
    }

    /**
     * All pages below one.
     */
    public function below(int $page): array
    {
        $found = [];
        $layer = [$page];
        while ($layer) {
            $parents = implode(',', array_map('intval', $layer));
            $children = $this->connections->getConnectionForTable('pages')->fetchFirstColumn(
                "SELECT uid FROM pages WHERE pid IN ($parents) AND sys_language_uid = 0 AND t3ver_wsid = 0 AND deleted = 0",
            );
            $layer = array_diff(array_map('intval', $children), $found, [$page]); // Broken trees have circles.
            array_push($found, ...$layer);
        }
        return $found;
    }

    /**
     * All pages of all sites.
     */
    public function all(): array
    {
        $roots = array_map(fn($site) => $site->getRootPageId(), array_values($this->sites->getAllSites()));
        return array_unique(array_merge($roots, ...array_map($this->below(...), $roots)));
    }

    /**
     * The address of a page in a language; empty: no site has it.
     */
    public function address(int $page, int $language): string
    {
        $records = $this->connections->getConnectionForTable('pages')->fetchAllAssociative(
            'SELECT uid, pid, sys_language_uid, l10n_parent, slug, doktype FROM pages WHERE sys_language_uid = ?'
            . ' AND (uid = ? OR l10n_parent = ?) AND t3ver_wsid = 0 ORDER BY deleted, uid',
            [$language, $page, $page],
        );
        if (!$records) {
            return '';
        }
        try {
            $site = $this->sites->getSiteByPageId($page);
            // The router takes a record as it is; by its number it would look for a visible one.
            $record = ['uid' => $page] + ($language ? ['_LOCALIZED_UID' => $records[0]['uid'], '_PAGES_OVERLAY' => true] : []) + $records[0];
            return (string)$site->getRouter()->generateUri($record, ['_language' => $language]);
        } catch (SiteNotFoundException | InvalidRouteArgumentsException | \InvalidArgumentException) {
            return '';
        }
    }
}
