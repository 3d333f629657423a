<?php

namespace Drupal\pagewire;

use Drupal\Core\Config\ConfigFactoryInterface;
use Drupal\Core\Site\Settings;
use Drupal\Core\State\StateInterface;

/**
 * Where to send, and what.
 */
final class PagewireSettings {

  public const NAME = 'pagewire.settings';
  public const SECRET = 'pagewire.secret';

  public function __construct(
    private readonly ConfigFactoryInterface $configs,
    private readonly StateInterface $state,
  ) {}

  /**
   * A setting, without a slash at its end.
   */
  public function text(string $name): string {
    return rtrim((string) $this->configs->get(self::NAME)->get($name), '/');
  }

  /**
   * The connector's secret.
   *
   * It is in the state and not in the configuration, which is exported to files. `$settings['pagewire_secret']` in
   * settings.php keeps it out of the database.
   */
  public function secret(): string {
    return (string) Settings::get('pagewire_secret', $this->state->get(self::SECRET, ''));
  }

  /**
   * Whether nodes of a type are pages.
   */
  public function sends(string $type): bool {
    $types = $this->configs->get(self::NAME)->get('types') ?: [];
    return !$types || in_array($type, $types, TRUE);
  }

  /**
   * Whether everything is there that sending needs.
   */
  public function ready(): bool {
    return $this->text('url') !== '' && $this->text('site') !== '' && $this->text('connector') !== ''
      && Signature::key($this->secret()) !== NULL;
  }

}
