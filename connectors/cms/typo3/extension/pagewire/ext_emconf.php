<?php

$EM_CONF[$_EXTKEY] = [
    'title' => 'Pagewire',
    'description' => 'Sends the address of every changed page to Pagewire, which reads it as visitors do.',
    'category' => 'services',
    'state' => 'beta',
    'version' => '0.3.0',
    'constraints' => ['depends' => ['typo3' => '12.4.0-13.4.99']],
    'autoload' => ['psr-4' => ['Pagewire\\Typo3\\' => 'Classes/']],
];
