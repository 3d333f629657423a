<?php
/**
 * The chat on every page.
 *
 * @package Pagewire
 */

namespace Pagewire;

defined( 'ABSPATH' ) || exit;

/** Puts `<script type="module" src=".../widget.js" data-site data-lang>` at the end of pages. */
final class Widget {

	const HANDLE = 'pagewire-widget';

	/**
	 * Whether and from where.
	 *
	 * @var Settings
	 */
	private $settings;

	/**
	 * Languages.
	 *
	 * @var Pages
	 */
	private $pages;

	/**
	 * Takes what it needs.
	 *
	 * @param Settings $settings Whether and from where.
	 * @param Pages    $pages    Languages.
	 */
	public function __construct( Settings $settings, Pages $pages ) {
		$this->settings = $settings;
		$this->pages    = $pages;
	}

	/** Listens. */
	public function register() {
		add_action( 'wp_enqueue_scripts', array( $this, 'enqueue' ) );
		add_filter( 'script_loader_tag', array( $this, 'tag' ), 10, 3 );
	}

	/** Adds the script when it is wanted. */
	public function enqueue() {
		$all = $this->settings->all();
		if ( $all['widget'] && '' !== $this->settings->for_visitors() && '' !== $all['site'] ) {
			// phpcs:ignore WordPress.WP.EnqueuedResourceParameters -- Pagewire says itself how long it is good for.
			wp_enqueue_script( self::HANDLE, $this->settings->for_visitors() . '/widget.js', array(), null, true );
		}
	}

	/**
	 * Writes its tag.
	 *
	 * @param string $tag    As WordPress writes it.
	 * @param string $handle Whose.
	 * @param string $src    Address.
	 * @return string
	 */
	public function tag( $tag, $handle, $src ) {
		if ( self::HANDLE !== $handle ) {
			return $tag;
		}
		$post = is_singular() ? get_queried_object() : null;
		$lang = $post instanceof \WP_Post ? $this->pages->lang( $post ) : $this->pages->site_lang();
		// phpcs:ignore WordPress.WP.EnqueuedResources -- it is enqueued, see above.
		return sprintf( '<script type="module" src="%s" data-site="%s" data-lang="%s"></script>' . "\n", esc_url( $src ), esc_attr( $this->settings->all()['site'] ), esc_attr( $lang ) );
	}
}
