<?php

use Pagewire\Typo3\Hook\Marks;

defined('TYPO3') or die();

// Each change of a record ends in the cache of its page being cleared.
$GLOBALS['TYPO3_CONF_VARS']['SC_OPTIONS']['t3lib/class.t3lib_tcemain.php']['clearCachePostProc']['pagewire'] = Marks::class . '->cacheCleared';
// The subpages of a page that is moved, or whose access changes, are cleared by nothing.
$GLOBALS['TYPO3_CONF_VARS']['SC_OPTIONS']['t3lib/class.t3lib_tcemain.php']['processDatamapClass']['pagewire'] = Marks::class;
$GLOBALS['TYPO3_CONF_VARS']['SC_OPTIONS']['t3lib/class.t3lib_tcemain.php']['processCmdmapClass']['pagewire'] = Marks::class;
