<?php

use Pagewire\Typo3\Hook\Marks;

defined('TYPO3') or die();

// Each change of a record clears the cache of its page.
$GLOBALS['TYPO3_CONF_VARS']['SC_OPTIONS']['t3lib/class.t3lib_tcemain.php']['clearCachePostProc']['pagewire'] = Marks::class . '->cacheCleared';
// Not of the page that it is moved away from, and not of those below a page that is moved, or whose access changes.
$GLOBALS['TYPO3_CONF_VARS']['SC_OPTIONS']['t3lib/class.t3lib_tcemain.php']['moveRecordClass']['pagewire'] = Marks::class;
$GLOBALS['TYPO3_CONF_VARS']['SC_OPTIONS']['t3lib/class.t3lib_tcemain.php']['processDatamapClass']['pagewire'] = Marks::class;
$GLOBALS['TYPO3_CONF_VARS']['SC_OPTIONS']['t3lib/class.t3lib_tcemain.php']['processCmdmapClass']['pagewire'] = Marks::class;
