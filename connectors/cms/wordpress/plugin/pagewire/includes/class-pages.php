<?php
/**
 * What a post is to Pagewire. connectors/cms/wordpress/client.py makes the same of what the REST API says.
 *
 * @package Pagewire
 */

namespace Pagewire;

use WP_Post;

defined( 'ABSPATH' ) || exit;

/** Which posts are public pages, and their documents. */
final class Pages {

	const MAX_LABELS = 200; // As in schemas/labels.py: of a page, ...
	const MAX_LABEL  = 200; // ... and characters of each.

	/**
	 * Which post types are chosen.
	 *
	 * @var Settings
	 */
	private $settings;

	/**
	 * Takes what it needs.
	 *
	 * @param Settings $settings Which post types are chosen.
	 */
	public function __construct( Settings $settings ) {
		$this->settings = $settings;
	}

	/**
	 * Whether any visitor may read it: published, no password, of a chosen type.
	 *
	 * @param WP_Post|null $post A post as it is, or as it was.
	 * @return bool
	 */
	public function is_public( $post ) {
		return $post instanceof WP_Post
			&& 'publish' === $post->post_status
			&& '' === $post->post_password
			&& in_array( $post->post_type, $this->settings->types(), true );
	}

	/**
	 * Whether it is read as the theme shows it: fields, prices and whatever else stands around the content.
	 *
	 * @param WP_Post|null $post A post.
	 * @return bool
	 */
	public function is_shown( $post ) {
		return $post instanceof WP_Post && in_array( $post->post_type, $this->settings->shown(), true );
	}

	/**
	 * Its id at Pagewire: the same whatever happens to title, slug and parent.
	 *
	 * @param WP_Post $post A post.
	 * @return string
	 */
	public static function id( WP_Post $post ) {
		return $post->post_type . '-' . $post->ID;
	}

	/**
	 * Its language as a BCP 47 tag: from Polylang or WPML, else the site's.
	 *
	 * @param WP_Post $post A post.
	 * @return string
	 */
	public function lang( WP_Post $post ) {
		$lang = function_exists( 'pll_get_post_language' ) ? (string) pll_get_post_language( $post->ID, 'slug' ) : '';
		if ( '' === $lang && has_filter( 'wpml_post_language_details' ) ) {
			// phpcs:ignore WordPress.NamingConventions.PrefixAllGlobals -- WPML's filter.
			$details = apply_filters( 'wpml_post_language_details', null, $post->ID );
			$lang    = is_array( $details ) && ! empty( $details['language_code'] ) ? (string) $details['language_code'] : '';
		}
		return '' === $lang ? $this->site_lang() : self::tag( $lang );
	}

	/**
	 * The language of pages that say nothing else: as set, else the site's without its country.
	 *
	 * @return string
	 */
	public function site_lang() {
		$lang = $this->settings->all()['lang'];
		// Not get_user_locale(): who happens to save it must not matter.
		return '' === $lang ? self::tag( strtok( get_locale(), '_' ) ) : $lang;
	}

	/**
	 * A language as Pagewire writes it: primary language in lower case, country in upper case.
	 *
	 * @param string $lang `de`, `pt-br`, `pt_BR`.
	 * @return string
	 */
	public static function tag( $lang ) {
		$parts    = explode( '-', str_replace( '_', '-', strtolower( $lang ) ) );
		$parts[0] = preg_replace( '/[^a-z]/', '', $parts[0] );
		foreach ( $parts as $n => $part ) {
			if ( $n > 0 && 2 === strlen( $part ) ) {
				$parts[ $n ] = strtoupper( $part );
			}
		}
		return implode( '-', $parts );
	}

	/**
	 * What the queue keeps of it. The revision is the time of its last change, to the end of that second: the REST API
	 * tells no more, and who compares the two must find them equal.
	 *
	 * @param WP_Post $post A post.
	 * @return array
	 */
	public function row( WP_Post $post ) {
		return array(
			'page_id'  => self::id( $post ),
			'lang'     => $this->lang( $post ),
			'post_id'  => $post->ID,
			'revision' => max( Queue::now(), 1000 * (int) strtotime( $post->post_modified_gmt . ' UTC' ) + 999 ),
		);
	}

	/**
	 * What the page document (schemas/page.py) says beside the content. Filters run: only for the page's own request.
	 *
	 * @param WP_Post $post A public post.
	 * @return array
	 */
	public function about( WP_Post $post ) {
		$terms = $this->terms( $post );
		$about = array(
			'url'         => (string) get_permalink( $post ),
			'name'        => trim( str_replace( '-', ' ', rawurldecode( $post->post_name ) ) ),
			'title'       => self::plain( get_the_title( $post ) ),
			'description' => self::description( $post ),
			'keywords'    => self::keywords( $terms ),
		);
		$labels = self::labels( $terms );
		if ( $labels ) { // An empty array would be a list in JSON.
			$about['labels'] = $labels;
		}
		if ( strtotime( $post->post_modified_gmt . ' UTC' ) > 0 ) { // Imports leave 0000-00-00.
			$about['changed_at'] = str_replace( ' ', 'T', $post->post_modified_gmt ) . 'Z';
		}
		return $about;
	}

	/**
	 * Names of its categories, tags and whatever else sorts it, without the one that says nothing.
	 *
	 * @param WP_Post $post A post.
	 * @return string[][] By taxonomy; sorted, each once.
	 */
	private function terms( WP_Post $post ) {
		$found = array();
		foreach ( get_object_taxonomies( $post->post_type, 'objects' ) as $taxonomy ) {
			$names = array();
			$terms = $taxonomy->show_in_rest ? get_the_terms( $post, $taxonomy->name ) : false;
			foreach ( is_array( $terms ) ? $terms : array() as $term ) {
				if ( 'uncategorized' !== $term->slug ) {
					$names[] = self::plain( $term->name );
				}
			}
			$found[ $taxonomy->name ] = self::sorted( $names );
		}
		ksort( $found, SORT_STRING );
		return $found;
	}

	/**
	 * The names of all taxonomies.
	 *
	 * @param string[][] $terms By taxonomy.
	 * @return string[] Sorted, each once.
	 */
	private static function keywords( array $terms ) {
		return self::sorted( $terms ? array_merge( ...array_values( $terms ) ) : array() );
	}

	/**
	 * The names as labels, as far as Pagewire keeps them: others would have it refuse the page.
	 *
	 * @param string[][] $terms By taxonomy.
	 * @return string[][]
	 */
	private static function labels( array $terms ) {
		$labels = array();
		$left   = self::MAX_LABELS;
		foreach ( $terms as $taxonomy => $names ) {
			$short = array();
			foreach ( $names as $name ) {
				if ( mb_strlen( $name, 'UTF-8' ) <= self::MAX_LABEL && ! preg_match( '/[\x00-\x1f\x7f]/', $name ) ) {
					$short[] = $name;
				}
			}
			$short = array_slice( $short, 0, $left );
			$left -= count( $short );
			if ( $short ) {
				$labels[ $taxonomy ] = $short;
			}
		}
		return $labels;
	}

	/**
	 * Each once, in the order of their bytes.
	 *
	 * @param string[] $names Names, perhaps empty ones.
	 * @return string[]
	 */
	private static function sorted( array $names ) {
		$names = array_values( array_unique( array_filter( $names, 'strlen' ) ) );
		sort( $names, SORT_STRING );
		return $names;
	}

	/**
	 * The excerpt that somebody wrote. The one that WordPress makes of the content's beginning is searched anyway.
	 *
	 * @param WP_Post $post A public post.
	 * @return string
	 */
	public static function description( WP_Post $post ) {
		if ( '' === trim( $post->post_excerpt ) ) {
			return '';
		}
		// phpcs:ignore WordPress.NamingConventions.PrefixAllGlobals -- WordPress's own filters.
		return self::plain( (string) apply_filters( 'the_excerpt', apply_filters( 'get_the_excerpt', $post->post_excerpt, $post ) ) );
	}

	/**
	 * Text without tags and entities, white space as single spaces.
	 *
	 * @param string $html HTML.
	 * @return string
	 */
	public static function plain( $html ) {
		$text = preg_replace( '@<(script|style)[^>]*>.*?</\1>@si', '', wp_check_invalid_utf8( $html, true ) );
		$text = preg_replace( '@</?[a-zA-Z!][^>]*>@', '', $text );
		$text = html_entity_decode( $text, ENT_QUOTES | ENT_HTML5, 'UTF-8' );
		return trim( preg_replace( '/[ \t\r\n\f\x{a0}]+/u', ' ', $text ) );
	}
}
