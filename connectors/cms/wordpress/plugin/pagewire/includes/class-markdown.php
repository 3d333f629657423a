<?php
/**
 * Pages as Markdown and llms.txt for assistants, under this site's own address.
 *
 * @package Pagewire
 */

namespace Pagewire;

use WP_Post;

defined( 'ABSPATH' ) || exit;

/**
 * Answers with what Pagewire has of a page. WordPress still decides whether the visitor gets the page: redirects to a
 * login come first. Where Pagewire has nothing or does not answer, the theme answers as always.
 *
 *     /library.md, /library/?format=md, Accept: text/markdown ─▶ the post ─▶ GET /v1/sites/SITE/pages/ID.md
 *     /llms.txt ─────────────────────────────────────────────────────────▶ GET /v1/sites/SITE/llms.txt
 */
final class Markdown {

	const SUFFIX  = '.md';
	const TIMEOUT = 3;               // Seconds that a visitor waits for Pagewire before the theme answers.
	const FRESH   = 10;              // Seconds before a kept answer is asked for again, conditionally.
	const PAUSE   = 30;              // Seconds in which a Pagewire that is away is not asked again.
	const LARGEST = 8000000;         // Bytes of an answer.
	const KEPT    = 'pagewire_md_';  // Transients of answers.
	const AWAY    = 'pagewire_away'; // The transient of the pause.

	/**
	 * Whether it is on.
	 *
	 * @var Settings
	 */
	private $settings;

	/**
	 * Ids and languages.
	 *
	 * @var Pages
	 */
	private $pages;

	/**
	 * The way to Pagewire.
	 *
	 * @var Endpoint
	 */
	private $endpoint;

	/**
	 * Whether the address of this request had the suffix.
	 *
	 * @var bool
	 */
	private $suffixed = false;

	/**
	 * Takes what it needs.
	 *
	 * @param Settings $settings Whether it is on.
	 * @param Pages    $pages    Ids and languages.
	 * @param Endpoint $endpoint The way to Pagewire.
	 */
	public function __construct( Settings $settings, Pages $pages, Endpoint $endpoint ) {
		$this->settings = $settings;
		$this->pages    = $pages;
		$this->endpoint = $endpoint;
	}

	/** Listens, when it is on. */
	public function register() {
		if ( $this->settings->all()['markdown'] && $this->settings->ready() ) {
			add_filter( 'do_parse_request', array( $this, 'read_address' ) );
			// After everything that redirects visitors, such as to a login.
			add_action( 'template_redirect', array( $this, 'answer' ), PHP_INT_MAX );
			add_action( 'wp_head', array( $this, 'link' ) );
		}
	}

	/**
	 * Answers /llms.txt, and takes the suffix off the address of a page, so that WordPress finds the page.
	 *
	 * @param bool $parse Whether WordPress reads the address.
	 * @return bool
	 */
	public function read_address( $parse ) {
		if ( ! self::reads() ) {
			return $parse;
		}
		// phpcs:ignore WordPress.Security -- compared, cut and given back.
		$parts = explode( '?', $_SERVER['REQUEST_URI'] ?? '', 2 );
		$home  = (string) wp_parse_url( home_url( '/' ), PHP_URL_PATH );
		if ( $home . 'llms.txt' === $parts[0] ) {
			$this->send_list();
		} elseif ( preg_match( '~[^/]\.md$~D', $parts[0] ) ) {
			$this->suffixed         = true;
			$parts[0]               = user_trailingslashit( substr( $parts[0], 0, -strlen( self::SUFFIX ) ) );
			$_SERVER['REQUEST_URI'] = implode( '?', $parts );
			remove_action( 'template_redirect', 'redirect_canonical' ); // It would lead to the page itself.
		}
		return $parse;
	}

	/** Sends the page of this request, if Markdown is asked for. */
	public function answer() {
		$post = self::post();
		if ( ! self::reads() || ! $this->pages->is_public( $post ) || is_preview() || is_feed() || is_embed() || is_trackback() ) {
			return;
		}
		// phpcs:ignore WordPress.Security -- compared.
		$asked = $this->suffixed || 'md' === ( $_GET['format'] ?? '' );
		if ( ! $asked ) {
			headers_sent() || header( 'Vary: Accept', false );
			// phpcs:ignore WordPress.Security -- compared.
			$asked = self::prefers_markdown( (string) ( $_SERVER['HTTP_ACCEPT'] ?? '' ) );
		}
		if ( $asked ) {
			$path = 'pages/' . rawurlencode( Pages::id( $post ) . self::SUFFIX ) . '?lang=' . rawurlencode( $this->pages->lang( $post ) );
			$this->send( $this->fetched( $path ), (string) get_permalink( $post ) );
		}
	}

	/** Says in the head of a page where its Markdown is. */
	public function link() {
		$post = self::post();
		if ( $this->pages->is_public( $post ) ) {
			printf( '<link rel="alternate" type="text/markdown" href="%s">' . "\n", esc_url( add_query_arg( 'format', 'md', get_permalink( $post ) ) ) );
		}
	}

	/** Sends the list of this site's pages. */
	private function send_list() {
		// phpcs:ignore WordPress.Security -- compared with a pattern.
		$lang  = isset( $_GET['lang'] ) && is_string( $_GET['lang'] ) ? $_GET['lang'] : '';
		$query = array( 'below' => home_url( '/' ) );
		if ( preg_match( '/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/D', $lang ) ) {
			$query['lang'] = Pages::tag( $lang ); // One kept answer for DE and de.
		}
		$this->send( $this->fetched( 'llms.txt?' . http_build_query( $query ) ), '' );
	}

	/**
	 * Pagewire's answer, kept for a while; null where it has none.
	 *
	 * @param string $path Below the site.
	 * @return string|null
	 */
	private function fetched( $path ) {
		$key  = self::KEPT . md5( $this->settings->endpoint() . ' ' . $this->settings->all()['site'] . ' ' . $path );
		$kept = get_transient( $key );
		$kept = is_array( $kept ) ? $kept : array();
		if ( $kept && $kept['at'] > time() - self::FRESH ) {
			return $kept['body'];
		}
		if ( get_transient( self::AWAY ) ) {
			return null;
		}
		$answer = $this->endpoint->get( $path, $kept['etag'] ?? '', self::TIMEOUT, self::LARGEST );
		$status = (int) wp_remote_retrieve_response_code( $answer );
		$body   = 304 === $status && $kept ? $kept['body'] : wp_remote_retrieve_body( $answer );
		$right  = 304 === $status || 0 === strpos( (string) wp_remote_retrieve_header( $answer, 'content-type' ), 'text/markdown' );
		if ( ! $right || ! in_array( $status, array( 200, 304 ), true ) || '' === $body || strlen( $body ) >= self::LARGEST ) {
			delete_transient( $key );
			if ( 0 === $status || 429 === $status || $status >= 500 ) {
				set_transient( self::AWAY, 1, self::PAUSE );
			}
			return null;
		}
		$now = array(
			'at'   => time(),
			'body' => $body,
			'etag' => (string) wp_remote_retrieve_header( $answer, 'etag' ),
		);
		set_transient( $key, $now, HOUR_IN_SECONDS );
		return $body;
	}

	/**
	 * Sends it, or nothing but that it is known, and ends the request. Without a body the theme goes on.
	 *
	 * @param string|null $body      Markdown.
	 * @param string      $canonical Address of the page that it is of.
	 */
	private function send( $body, $canonical ) {
		// Something else has begun to answer.
		if ( null === $body || headers_sent() ) {
			return;
		}
		$etag = '"' . md5( $body ) . '"';
		// phpcs:ignore WordPress.Security -- compared.
		preg_match_all( '/"[^"]*"/', wp_unslash( $_SERVER['HTTP_IF_NONE_MATCH'] ?? '' ), $tags ); // W/ before one does not matter.
		$known = in_array( $etag, $tags[0], true );
		defined( 'DONOTCACHEPAGE' ) || define( 'DONOTCACHEPAGE', true ); // Page caches know the address only.
		status_header( $known ? 304 : 200 );
		header( 'Content-Type: text/markdown; charset=utf-8' );
		header( 'X-Content-Type-Options: nosniff' );
		header( 'Cache-Control: no-cache' );
		header( 'Vary: Accept' );
		header( "ETag: $etag" );
		'' === $canonical || header( 'Link: <' . esc_url_raw( $canonical ) . '>; rel="canonical"' );
		if ( ! $known ) {
			echo $body; // phpcs:ignore WordPress.Security.EscapeOutput -- text, and no browser may take it for HTML.
		}
		exit;
	}

	/**
	 * Whether who asks wants Markdown at least as much as HTML, and says so by name.
	 *
	 * @param string $accept Of the request.
	 * @return bool
	 */
	private static function prefers_markdown( $accept ) {
		$wanted = array();
		foreach ( array_slice( explode( ',', strtolower( $accept ) ), 0, 50 ) as $range ) {
			$parts                        = array_map( 'trim', explode( ';', $range ) );
			$weights                      = preg_grep( '/^q=/', $parts );
			$wanted[ (string) $parts[0] ] = $weights ? (float) substr( reset( $weights ), 2 ) : 1.0;
		}
		$markdown = $wanted['text/markdown'] ?? 0.0;
		return $markdown > 0 && $markdown >= ( $wanted['text/html'] ?? 0.0 );
	}

	/** Whether this request only reads. */
	private static function reads() {
		// phpcs:ignore WordPress.Security -- compared.
		return in_array( $_SERVER['REQUEST_METHOD'] ?? 'GET', array( 'GET', 'HEAD' ), true );
	}

	/**
	 * The post whose page is asked for.
	 *
	 * @return WP_Post|null
	 */
	private static function post() {
		$post = is_singular() ? get_queried_object() : null;
		return $post instanceof WP_Post ? $post : null;
	}
}
