<?php

namespace Drupal\pagewire\Drush\Commands;

use Drupal\pagewire\Outbox;
use Drupal\pagewire\Sender;
use Drush\Attributes as CLI;
use Drush\Commands\DrushCommands;
use Symfony\Component\DependencyInjection\ContainerInterface;

/**
 * Commands for cron and for the first time.
 */
final class PagewireCommands extends DrushCommands {

  public function __construct(
    private readonly Sender $sender,
    private readonly Outbox $outbox,
  ) {
    parent::__construct();
  }

  /**
   * {@inheritdoc}
   */
  public static function create(ContainerInterface $container): self {
    return new self($container->get('pagewire.sender'), $container->get('pagewire.outbox'));
  }

  /**
   * Delivers what waits, for a minute at most. Exit code 1: something still waits.
   */
  #[CLI\Command(name: 'pagewire:send')]
  #[CLI\Usage(name: 'drush pagewire:send', description: 'From the system\'s cron, every minute.')]
  public function send(): int {
    $this->sender->drain(60);
    return $this->report();
  }

  /**
   * Sends every public page, behind the saves.
   */
  #[CLI\Command(name: 'pagewire:sync')]
  public function sync(): int {
    $this->sender->forgive();
    $this->sender->sendEverything();
    $this->sender->drain(3600);
    return $this->report();
  }

  private function report(): int {
    $waiting = $this->outbox->length();
    $problem = $this->sender->state()['problem'];
    $this->io()->writeln("$waiting waiting" . ($problem === '' ? '' : ": $problem"));
    return $waiting ? self::EXIT_FAILURE : self::EXIT_SUCCESS;
  }

}
