<?php

declare(strict_types=1);

namespace Pagewire\Typo3;

/**
 * Pagewire is away, or refuses. Everything is kept and sent later.
 */
final class Refusal extends \RuntimeException {}
