<?php

namespace Drupal\pagewire\EventSubscriber;

use Drupal\pagewire\Outbox;
use Drupal\pagewire\Sender;
use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpKernel\KernelEvents;

/**
 * Delivers what a request marked, after the editor has the response.
 */
final class AfterResponse implements EventSubscriberInterface {

  private const SECONDS = 5.0;

  public function __construct(
    private readonly Outbox $outbox,
    private readonly Sender $sender,
  ) {}

  /**
   * {@inheritdoc}
   */
  public static function getSubscribedEvents(): array {
    return [KernelEvents::TERMINATE => ['deliver', -100]];
  }

  /**
   * Delivers; cron goes on with the rest.
   */
  public function deliver(): void {
    if ($this->outbox->touched) {
      $this->sender->drain(self::SECONDS);
    }
  }

}
