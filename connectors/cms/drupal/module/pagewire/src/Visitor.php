<?php

namespace Drupal\pagewire;

use Drupal\Core\Config\ConfigFactoryInterface;
use Drupal\Core\Language\LanguageManagerInterface;
use Drupal\Core\Session\AccountSwitcherInterface;
use Drupal\Core\Session\AnonymousUserSession;
use Drupal\Core\Theme\ThemeInitializationInterface;
use Drupal\Core\Theme\ThemeManagerInterface;
use Drupal\workspaces\WorkspaceManagerInterface;

/**
 * Lets code run as for a visitor who is not logged in, whatever the editor's request has set.
 */
final class Visitor {

  public function __construct(
    private readonly AccountSwitcherInterface $switcher,
    private readonly ThemeManagerInterface $themes,
    private readonly ThemeInitializationInterface $initialization,
    private readonly ConfigFactoryInterface $configs,
    private readonly LanguageManagerInterface $languages,
    private readonly ?WorkspaceManagerInterface $workspaces = NULL,
  ) {}

  /**
   * Runs it without a login, in the website's own theme, outside of every workspace.
   */
  public function run(callable $work): void {
    $theme = $this->themes->getActiveTheme();
    $language = $this->languages->getConfigOverrideLanguage();
    $error = NULL;
    // The workspaces module does not switch back after an exception.
    $guarded = function () use ($work, &$error): void {
      try {
        $work();
      }
      catch (\Throwable $thrown) {
        $error = $thrown;
      }
    };
    $this->switcher->switchTo(new AnonymousUserSession());
    try {
      $this->themes->setActiveTheme($this->initialization->initTheme($this->configs->get('system.theme')->get('default')));
      $this->workspaces?->hasActiveWorkspace() ? $this->workspaces->executeOutsideWorkspace($guarded) : $guarded();
    }
    finally {
      $this->languages->setConfigOverrideLanguage($language);
      $this->themes->setActiveTheme($theme);
      $this->switcher->switchBack();
    }
    if ($error) {
      throw $error;
    }
  }

}
