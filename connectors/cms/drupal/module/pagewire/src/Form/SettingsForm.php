<?php

namespace Drupal\pagewire\Form;

use Drupal\Core\Form\ConfigFormBase;
use Drupal\Core\Form\FormStateInterface;
use Drupal\node\Entity\NodeType;
use Drupal\pagewire\PagewireSettings;
use Drupal\pagewire\Signature;

/**
 * Configuration > Web services > Pagewire.
 */
final class SettingsForm extends ConfigFormBase {

  private const SHOWN = 50; // Refused pages that are named.

  /**
   * {@inheritdoc}
   */
  public function getFormId(): string {
    return 'pagewire_settings';
  }

  /**
   * {@inheritdoc}
   */
  protected function getEditableConfigNames(): array {
    return [PagewireSettings::NAME];
  }

  /**
   * {@inheritdoc}
   */
  public function buildForm(array $form, FormStateInterface $form_state): array {
    $config = $this->config(PagewireSettings::NAME);
    $form['progress'] = $this->progress();
    $form['url'] = [
      '#type' => 'url',
      '#title' => $this->t('Address of Pagewire'),
      '#default_value' => $config->get('url'),
      '#required' => TRUE,
      '#description' => $this->t('https://pagewire.example.org, without a path behind it.'),
    ];
    $form['site'] = ['#type' => 'textfield', '#title' => $this->t('Site'), '#default_value' => $config->get('site'), '#required' => TRUE];
    $form['connector'] = ['#type' => 'textfield', '#title' => $this->t('Connector'), '#default_value' => $config->get('connector'), '#required' => TRUE];
    $form['secret'] = [
      '#type' => 'password',
      '#title' => $this->t('Secret'),
      '#description' => $this->t('whsec_... as in pagewire.yaml. An empty field keeps the one that is saved.'),
    ];
    $form['website'] = [
      '#type' => 'url',
      '#title' => $this->t('Address of this website'),
      '#default_value' => $config->get('website') ?: $this->getRequest()->getSchemeAndHttpHost(),
      '#required' => TRUE,
      '#description' => $this->t('Scheme and host that visitors see, for the addresses of pages.'),
    ];
    $form['types'] = [
      '#type' => 'checkboxes',
      '#title' => $this->t('Content types'),
      '#options' => array_map(fn (NodeType $type) => $type->label(), NodeType::loadMultiple()),
      '#default_value' => $config->get('types') ?: [],
      '#description' => $this->t('None chosen: all.'),
    ];
    $form = parent::buildForm($form, $form_state);
    $form['actions']['test'] = ['#type' => 'submit', '#value' => $this->t('Test connection'), '#submit' => ['::test'], '#limit_validation_errors' => []];
    $form['actions']['everything'] = ['#type' => 'submit', '#value' => $this->t('Send everything'), '#submit' => ['::everything'], '#limit_validation_errors' => []];
    return $form;
  }

  /**
   * {@inheritdoc}
   */
  public function validateForm(array &$form, FormStateInterface $form_state): void {
    $names = ['site' => '/\A[a-z0-9][a-z0-9-]{0,62}\z/', 'connector' => '/\A[a-z0-9][a-z0-9_-]{0,62}\z/', 'url' => '#\Ahttps?://[^\s/@?\#]+/?\z#', 'website' => '#\Ahttps?://[^\s/@?\#]+/?\z#'];
    foreach ($names as $name => $pattern) {
      if (!preg_match($pattern, (string) $form_state->getValue($name))) {
        $form_state->setErrorByName($name, $this->t('@name has another form than in pagewire.yaml, or the address has a path.', ['@name' => $form[$name]['#title']]));
      }
    }
    $secret = trim((string) $form_state->getValue('secret'));
    if ($secret !== '' && Signature::key($secret) === NULL) {
      $form_state->setErrorByName('secret', $this->t('This is not a secret: it begins with whsec_ and at least 32 more characters follow.'));
    }
  }

  /**
   * {@inheritdoc}
   */
  public function submitForm(array &$form, FormStateInterface $form_state): void {
    $config = $this->config(PagewireSettings::NAME);
    $before = $config->get('types');
    foreach (['url', 'site', 'connector', 'website'] as $name) {
      $config->set($name, rtrim((string) $form_state->getValue($name), '/'));
    }
    $config->set('types', array_values(array_filter($form_state->getValue('types'))))->save();
    $secret = trim((string) $form_state->getValue('secret'));
    if ($secret !== '') {
      \Drupal::state()->set(PagewireSettings::SECRET, $secret);
    }
    $sender = \Drupal::service('pagewire.sender');
    $sender->forgive();
    if ($before !== $config->get('types')) {
      $sender->sendEverything(); // Other pages are public for Pagewire than before.
    }
    parent::submitForm($form, $form_state);
  }

  /**
   * The button Test connection.
   */
  public function test(): void {
    if (!\Drupal::service('pagewire.settings')->ready()) {
      $this->messenger()->addError($this->t('Fill in address, site, connector and secret, and save them first.'));
      return;
    }
    $answer = \Drupal::service('pagewire.gateway')->post('', 0);
    if ($answer['problem'] !== '') {
      $this->messenger()->addError($answer['problem']);
      return;
    }
    \Drupal::service('pagewire.sender')->forgive();
    $this->messenger()->addStatus($this->t('The connection works: Pagewire took a signed test delivery.'));
  }

  /**
   * The button Send everything.
   */
  public function everything(): void {
    \Drupal::service('pagewire.sender')->sendEverything();
    \Drupal::service('pagewire.outbox')->touched = TRUE; // Begin after this response.
    $this->messenger()->addStatus($this->t('All public pages are being sent, behind the saves.'));
  }

  /**
   * What waits, what was delivered last, what is refused and why.
   */
  private function progress(): array {
    $outbox = \Drupal::service('pagewire.outbox');
    $state = \Drupal::service('pagewire.sender')->state();
    $delivered = $state['delivered'] ? \Drupal::service('date.formatter')->format($state['delivered'], 'short') : $this->t('never');
    $items = [$this->t('Waiting: @count', ['@count' => $outbox->length()]), $this->t('Last delivered: @time', ['@time' => $delivered])];
    if ($state['problem'] !== '') {
      $items[] = $state['problem'];
    }
    $refused = array_map(fn ($row) => "{$row->page_id} ({$row->lang}): {$row->problem}", $outbox->refused(self::SHOWN));
    return [
      'state' => ['#theme' => 'item_list', '#items' => $items],
      'refused' => $refused ? ['#theme' => 'item_list', '#title' => $this->t('Refused'), '#items' => $refused] : [],
    ];
  }

}
