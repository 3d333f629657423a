<?php

use Pagewire\Typo3\Middleware\MembersOnly;

// Before all others, so that it sees what any of them answers.
return [
    'frontend' => [
        'pagewire/members-only' => ['target' => MembersOnly::class, 'before' => ['typo3/cms-frontend/timetracker']],
    ],
];
