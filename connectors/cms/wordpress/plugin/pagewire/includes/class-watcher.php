<?php
/**
 * Which events of WordPress change which pages.
 *
 * @package Pagewire
 */

namespace Pagewire;

use WP_Post;

defined( 'ABSPATH' ) || exit;

/**
 * Every status change ends in wp_after_insert_post, with terms and meta saved and the post as it was before; only a
 * permanent delete does not come by there. A scheduled post comes by twice: when it is scheduled it is not public.
 */
final class Watcher {

	// What WordPress calls the type of synced patterns, which were reusable blocks before.
	const PATTERN = 'wp_block';

	/**
	 * Which post types are chosen.
	 *
	 * @var Settings
	 */
	private $settings;

	/**
	 * Where changes go.
	 *
	 * @var Queue
	 */
	private $queue;

	/**
	 * What is public.
	 *
	 * @var Pages
	 */
	private $pages;

	/**
	 * Which page this request asks for.
	 *
	 * @var Visit
	 */
	private $visit;

	/**
	 * Starts sending everything again.
	 *
	 * @var Sender
	 */
	private $sender;

	/**
	 * Posts that are being deleted, with the pages below them.
	 *
	 * @var array<int, int[]>
	 */
	private $below = array();

	/**
	 * Takes what it needs.
	 *
	 * @param Settings $settings Which post types are chosen.
	 * @param Queue    $queue    Where changes go.
	 * @param Pages    $pages    What is public.
	 * @param Visit    $visit    Which page this request asks for.
	 * @param Sender   $sender   Starts sending everything again.
	 */
	public function __construct( Settings $settings, Queue $queue, Pages $pages, Visit $visit, Sender $sender ) {
		$this->settings = $settings;
		$this->queue    = $queue;
		$this->pages    = $pages;
		$this->visit    = $visit;
		$this->sender   = $sender;
	}

	/** Listens. */
	public function register() {
		add_action( 'wp_after_insert_post', array( $this, 'saved' ), 10, 4 );
		add_action( 'before_delete_post', array( $this, 'deleting' ), 10, 2 );
		add_action( 'after_delete_post', array( $this, 'deleted' ), 10, 2 );
		add_action( 'edited_term', array( $this, 'term_edited' ), 10, 3 );
		add_action( 'delete_term', array( $this, 'term_deleted' ), 10, 5 );
		// Both plugins may set a language behind the save.
		add_action( 'set_object_terms', array( $this, 'terms_set' ), 10, 6 );
		add_action( 'wpml_translation_update', array( $this, 'translated' ) );
		// The addresses of all pages change.
		add_action( 'permalink_structure_changed', array( $this->sender, 'send_everything' ) );
		add_action( 'update_option_home', array( $this->sender, 'send_everything' ) );
		add_action( 'update_option_' . Settings::OPTION, array( $this, 'settings_changed' ), 10, 2 );
	}

	/**
	 * A post was saved in any way: published, edited, unpublished, trashed, brought back, locked with a password.
	 *
	 * @param int          $post_id Its id.
	 * @param WP_Post      $post    As it is.
	 * @param bool         $update  Whether it was there.
	 * @param WP_Post|null $before  As it was.
	 */
	public function saved( $post_id, $post, $update, $before ) {
		if ( self::PATTERN === $post->post_type ) {
			$this->add( $this->showing( $post_id ), Queue::BULK );
		}
		if ( ! $this->concerns( $post ) && ! ( $before && $this->concerns( $before ) ) ) {
			return;
		}
		// A page that counts its views in itself would be asked for without end.
		if ( $this->visit->is_of( $post_id ) && $this->pages->is_public( $post ) && $this->pages->is_public( $before ) ) {
			return;
		}
		// What Pagewire knows under another id or in another language by now, too.
		$this->queue->touch( $post_id );
		if ( $this->pages->is_public( $post ) || $this->pages->is_public( $before ) ) {
			$this->queue->add( array( $this->pages->row( $post ) ) );
		}
		$moved = $before && ( $before->post_name !== $post->post_name || $before->post_parent !== $post->post_parent );
		if ( $moved && is_post_type_hierarchical( $post->post_type ) ) {
			$this->add( $this->descendants( $post ) );
		}
	}

	/**
	 * A post is about to be deleted for good. Its own delete is queued now: if we die in the middle nothing tells any more.
	 *
	 * @param int     $post_id Its id.
	 * @param WP_Post $post    As it still is.
	 */
	public function deleting( $post_id, $post ) {
		if ( ! $this->concerns( $post ) ) {
			return;
		}
		if ( $this->pages->is_public( $post ) ) {
			$this->queue->add( array( $this->pages->row( $post ) ) );
		}
		$this->queue->touch( $post_id, true );
		if ( is_post_type_hierarchical( $post->post_type ) ) {
			$this->below[ $post_id ] = $this->descendants( $post );
			$this->add( $this->below[ $post_id ] );
		}
	}

	/**
	 * A post is deleted: the pages below it moved up, without an event of their own. Again, for what was read in between.
	 *
	 * @param int     $post_id Its id.
	 * @param WP_Post $post    As it was.
	 */
	public function deleted( $post_id, $post ) {
		if ( self::PATTERN === $post->post_type ) {
			$this->add( $this->showing( $post_id ), Queue::BULK );
		}
		if ( ! empty( $this->below[ $post_id ] ) ) {
			$this->add( $this->below[ $post_id ] );
		}
		unset( $this->below[ $post_id ] );
	}

	/**
	 * Polylang keeps the language of a post as a term.
	 *
	 * @param int    $post_id  The post.
	 * @param array  $terms    Its terms.
	 * @param int[]  $tt_ids   Their ids in the taxonomy.
	 * @param string $taxonomy The taxonomy.
	 * @param bool   $append   Whether older ones stay.
	 * @param int[]  $before   Ids of the older ones.
	 */
	public function terms_set( $post_id, $terms, $tt_ids, $taxonomy, $append, $before ) {
		if ( 'language' === $taxonomy && array_map( 'intval', $tt_ids ) !== array_map( 'intval', $before ) ) {
			$this->spoken( (int) $post_id );
		}
	}

	/**
	 * WPML set the language of something.
	 *
	 * @param mixed $about `element_id` of what is in the `context`.
	 */
	public function translated( $about ) {
		if ( is_array( $about ) && ! empty( $about['element_id'] ) && 'post' === ( $about['context'] ?? '' ) ) {
			$this->spoken( (int) $about['element_id'] );
		}
	}

	/**
	 * A post has another language: what Pagewire knows of it in the old one goes.
	 *
	 * @param int $post_id A post.
	 */
	private function spoken( $post_id ) {
		$post = get_post( $post_id );
		if ( $this->pages->is_public( $post ) ) {
			$this->queue->touch( $post_id );
			$this->queue->add( array( $this->pages->row( $post ) ) );
		}
	}

	/**
	 * A category or tag has a new name.
	 *
	 * @param int    $term_id  The term.
	 * @param int    $tt_id    The term in its taxonomy.
	 * @param string $taxonomy The taxonomy.
	 */
	public function term_edited( $term_id, $tt_id, $taxonomy ) {
		$posts = get_objects_in_term( $term_id, $taxonomy );
		if ( is_array( $posts ) ) {
			$this->add( $posts, Queue::BULK );
		}
	}

	/**
	 * A category or tag is gone.
	 *
	 * @param int    $term_id  The term.
	 * @param int    $tt_id    The term in its taxonomy.
	 * @param string $taxonomy The taxonomy.
	 * @param mixed  $term     What it was.
	 * @param int[]  $posts    What it was on.
	 */
	public function term_deleted( $term_id, $tt_id, $taxonomy, $term, $posts ) {
		$this->add( (array) $posts, Queue::BULK );
	}

	/**
	 * Other post types are sent than before, or in another language.
	 *
	 * @param mixed $before Old value.
	 * @param mixed $after  New value.
	 */
	public function settings_changed( $before, $after ) {
		$of_pages = array_flip( array( 'types', 'lang' ) );
		if ( is_array( $before ) && is_array( $after ) && array_intersect_key( $before, $of_pages ) !== array_intersect_key( $after, $of_pages ) ) {
			$this->sender->send_everything();
		}
	}

	/**
	 * Queues those of some posts that are public.
	 *
	 * @param int[] $post_ids Posts.
	 * @param int   $lane     Of the queue.
	 */
	private function add( array $post_ids, $lane = Queue::SAVE ) {
		foreach ( array_chunk( array_map( 'intval', $post_ids ), 500 ) as $chunk ) {
			_prime_post_caches( $chunk, false, false );
			$public = array_filter( array_map( 'get_post', $chunk ), array( $this->pages, 'is_public' ) );
			$this->queue->add( array_map( array( $this->pages, 'row' ), $public ), $lane );
		}
	}

	/**
	 * Whether it is of a type that is sent; revisions and menu items are not.
	 *
	 * @param WP_Post $post A post.
	 * @return bool
	 */
	private function concerns( WP_Post $post ) {
		return in_array( $post->post_type, $this->settings->types(), true );
	}

	/**
	 * All posts below one: their addresses have its slug in them, and nothing says that they changed.
	 *
	 * @param WP_Post $post A post of a hierarchical type.
	 * @return int[]
	 */
	private function descendants( WP_Post $post ) {
		global $wpdb;
		$found  = array();
		$layer  = array( $post->ID );
		$before = array( $post->ID => true );
		while ( $layer ) {
			$parents = implode( ',', array_map( 'intval', $layer ) );
			// phpcs:ignore WordPress.DB -- $parents are integers.
			$children = array_map( 'intval', $wpdb->get_col( $wpdb->prepare( "SELECT ID FROM {$wpdb->posts} WHERE post_parent IN ($parents) AND post_type = %s", $post->post_type ) ) );
			$layer    = array();
			foreach ( $children as $child ) {
				if ( ! isset( $before[ $child ] ) ) { // Broken sites have circles.
					$before[ $child ] = true;
					$layer[]          = $child;
					$found[]          = $child;
				}
			}
		}
		return $found;
	}

	/**
	 * All posts that show a synced pattern, also through patterns that hold it: nothing says that they changed. One that
	 * only has the same words in its text is found, too, and is sent as it is.
	 *
	 * @param int $pattern A synced pattern.
	 * @return int[]
	 */
	private function showing( $pattern ) {
		global $wpdb;
		$found  = array();
		$layer  = array( $pattern );
		$before = array( $pattern => true );
		while ( $layer ) {
			$like = array();
			foreach ( $layer as $held ) {
				foreach ( array( ',', '}' ) as $after ) { // 12 is no part of 123.
					$like[] = $wpdb->prepare( 'post_content LIKE %s', '%<!-- wp:block {%"ref":' . (int) $held . $after . '%' );
				}
			}
			// phpcs:ignore WordPress.DB -- every value is prepared above.
			$holders = $wpdb->get_results( "SELECT ID, post_type FROM {$wpdb->posts} WHERE post_status = 'publish' AND (" . implode( ' OR ', $like ) . ')' );
			$layer   = array();
			foreach ( $holders as $holder ) {
				$id = (int) $holder->ID;
				if ( isset( $before[ $id ] ) ) { // Broken sites have circles.
					continue;
				}
				$before[ $id ] = true;
				if ( self::PATTERN === $holder->post_type ) {
					$layer[] = $id;
				} else {
					$found[] = $id;
				}
			}
		}
		return $found;
	}
}
