<?php

namespace Drupal\pagewire;

use Drupal\Core\Entity\Entity\EntityViewDisplay;
use Drupal\Core\Entity\EntityTypeManagerInterface;
use Drupal\Core\Field\EntityReferenceFieldItemListInterface;
use Drupal\Core\Language\LanguageManagerInterface;
use Drupal\Core\Render\RendererInterface;
use Drupal\Core\Session\AnonymousUserSession;
use Drupal\node\NodeInterface;

/**
 * Nodes as pages: which are public, and what visitors read. One page for each translation.
 */
final class Pages {

  public const TYPE = 'node';

  public function __construct(
    private readonly EntityTypeManagerInterface $entities,
    private readonly RendererInterface $renderer,
    private readonly LanguageManagerInterface $languages,
    private readonly PagewireSettings $settings,
  ) {}

  /**
   * The page's id, the same in all languages.
   */
  public function id(NodeInterface $node): string {
    return self::TYPE . '-' . $node->id();
  }

  /**
   * The language of a translation as a tag: `pt-BR`. Without a language it is the website's.
   */
  public function lang(NodeInterface $node): string {
    $language = $node->language();
    $code = $language->isLocked() ? $this->languages->getDefaultLanguage()->getId() : $language->getId();
    $parts = explode('-', strtolower(str_replace('_', '-', $code)));
    foreach (array_slice($parts, 1, NULL, TRUE) as $at => $part) {
      $parts[$at] = match (strlen($part)) {
        2 => strtoupper($part),
        4 => ucfirst($part),
        default => $part,
      };
    }
    return implode('-', $parts);
  }

  /**
   * The languages in which a node is published.
   */
  public function published(NodeInterface $node): array {
    $published = array_filter($this->translations($node), fn (NodeInterface $one) => $one->isPublished());
    return $this->settings->sends($node->bundle()) ? array_map($this->lang(...), $published) : [];
  }

  /**
   * The newest version of a page that every visitor may see; NULL: there is none.
   */
  public function find(string $page_id, string $lang): ?NodeInterface {
    if (!preg_match('/\A' . self::TYPE . '-([0-9]{1,18})\z/', $page_id, $match)) {
      return NULL;
    }
    $node = $this->entities->getStorage(self::TYPE)->loadUnchanged($match[1]);
    foreach ($node ? $this->translations($node) : [] as $translation) {
      if ($this->lang($translation) === $lang) {
        return $this->isPublic($translation) ? $translation : NULL;
      }
    }
    return NULL;
  }

  /**
   * Public pages of the next nodes.
   *
   * @return array
   *   The pages, and the last node that was looked at; 0: there are no more.
   */
  public function after(int $nid, int $limit): array {
    $storage = $this->entities->getStorage(self::TYPE);
    $nids = $storage->getQuery()->accessCheck(FALSE)->condition('nid', $nid, '>')->sort('nid')->range(0, $limit)->execute();
    $storage->resetCache($nids);
    $public = [];
    foreach ($storage->loadMultiple($nids) as $node) {
      array_push($public, ...array_filter($this->translations($node), $this->isPublic(...)));
    }
    return [$public, (int) end($nids)];
  }

  /**
   * What Pagewire gets, without the revision.
   */
  public function document(NodeInterface $node): array {
    $this->languages->setConfigOverrideLanguage($node->language());
    $build = EntityViewDisplay::collectRenderDisplay($node, 'full')->build($node);
    foreach ($node->getFieldDefinitions() as $name => $definition) {
      if ($definition->getType() === 'comment') {
        unset($build[$name]);
      }
    }
    // The title has a field of its own; author and date belong to the template, and authors are never sent.
    unset($build['links'], $build['title'], $build['uid'], $build['created']);
    // Drupal 10.3 has renderInIsolation(); Drupal 12 has no renderPlain() any more.
    $render = method_exists($this->renderer, 'renderInIsolation') ? 'renderInIsolation' : 'renderPlain';
    return [
      'id' => $this->id($node),
      'lang' => $this->lang($node),
      'url' => $this->url($node),
      'title' => (string) $node->label(),
      'description' => $this->summary($node),
      'keywords' => $this->terms($node),
      'content' => (string) $this->renderer->$render($build),
      'changed_at' => gmdate('Y-m-d\TH:i:s\Z', (int) $node->getChangedTime()),
    ];
  }

  /**
   * Whether visitors who are not logged in may see a translation.
   */
  private function isPublic(NodeInterface $node): bool {
    $visitor = new AnonymousUserSession();
    // A long run must not decide by what was true before.
    $this->entities->getAccessControlHandler(self::TYPE)->resetCache();
    return $this->settings->sends($node->bundle()) && $node->isPublished() && $node->access('view', $visitor)
      && $node->toUrl()->access($visitor);
  }

  private function translations(NodeInterface $node): array {
    return array_map($node->getTranslation(...), array_keys($node->getTranslationLanguages()));
  }

  /**
   * The address of a page. A command line does not know the website's, so the setting has it.
   */
  private function url(NodeInterface $node): string {
    $address = $node->toUrl('canonical', ['language' => $node->language()])->toString(TRUE)->getGeneratedUrl();
    return str_starts_with($address, '/') ? $this->settings->text('website') . $address : $address;
  }

  private function summary(NodeInterface $node): string {
    $body = $node->hasField('body') ? $node->get('body') : NULL;
    return $body && !$body->isEmpty() && $body->access('view') ? trim(strip_tags((string) $body->summary)) : '';
  }

  /**
   * Names of its taxonomy terms that visitors may see.
   */
  private function terms(NodeInterface $node): array {
    $names = [];
    foreach ($node->getFields(FALSE) as $field) {
      if (!$field instanceof EntityReferenceFieldItemListInterface || $field->getSetting('target_type') !== 'taxonomy_term' || !$field->access('view')) {
        continue;
      }
      foreach ($field->referencedEntities() as $term) {
        $lang = $node->language()->getId();
        $term = $term->hasTranslation($lang) ? $term->getTranslation($lang) : $term;
        if ($term->access('view')) {
          $names[] = (string) $term->label();
        }
      }
    }
    return array_values(array_unique($names));
  }

}
