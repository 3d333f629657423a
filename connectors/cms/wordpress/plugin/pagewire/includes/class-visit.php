<?php
/**
 * A page as a visitor gets it: asked for at its own address, by a request of its own and without cookies.
 *
 * @package Pagewire
 */

namespace Pagewire;

use WP_Error;
use WP_Http;

defined( 'ABSPATH' ) || exit;

/**
 * Whatever a page's own code does (exit, redirect, a fatal error, a loop) ends that request and no other, and whatever
 * bars a page from visitors (a redirect, a filter of the content, a query that finds nothing) bars it from us.
 *
 *     Sender ─ask()─▶ GET permalink?pagewire-visit=ID-TIME-HMAC ─▶ answer() ─▶ theme, main loop, the_content ─▶ mark()
 *        ▲                                                                                                       │
 *        └───────────────────── what stands between our marks in the page's HTML ◀───────────────────────────────┘
 *
 * A page without marks is not shown to visitors, if it is WordPress that answers and nothing failed. Whether the site
 * can be asked at all is known from post 0, which answers before any page's code runs.
 */
final class Visit {

	const MARK    = 'pagewire-visit';
	const HEADER  = 'X-Pagewire-Visit'; // Has the tag: WordPress made this answer, and made it for this question.
	const FAILED  = '-failed'; // Stands behind the tag where a fatal error ended the page.
	const FATAL   = E_ERROR | E_PARSE | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;
	const TIMEOUT = 10;       // Seconds for one page.
	const LED     = 3;        // Redirects that are followed.
	const LARGEST = 8000000;  // Bytes of one page's HTML; Pagewire takes half of that as content.

	const TYPE    = 'application/ld+json';
	const SAID    = 200000;   // Bytes of a page's structured data that are sent.

	// What ask() finds out.
	const PAGE    = 'page';    // The page.
	const BARRED  = 'barred';  // Visitors do not get it, and why.
	const BROKEN  = 'broken';  // It fails, and how: nobody knows what visitors get.
	const TROUBLE = 'trouble'; // This site cannot be asked at all, and why.

	/**
	 * What a page is.
	 *
	 * @var Pages
	 */
	private $pages;

	/**
	 * Which post is asked for by this request, and what stands in the marks.
	 *
	 * @var array
	 */
	private $asked = array( 0, '' );

	/**
	 * For each content that is being made, whether it is that of the page that is asked for.
	 *
	 * @var bool[]
	 */
	private $begun = array();

	/**
	 * Takes what it needs.
	 *
	 * @param Pages $pages What a page is.
	 */
	public function __construct( Pages $pages ) {
		$this->pages = $pages;
	}

	/** Looks whether this request is one of ours. */
	public function register() {
		add_action( 'init', array( $this, 'answer' ), 0 );
	}

	/**
	 * Asks for a page.
	 *
	 * @param int $post_id A public post.
	 * @return array PAGE and its document without id, language and revision; else what it is and the reason.
	 */
	public function ask( $post_id ) {
		$url                       = (string) get_permalink( $post_id );
		list( $answer, $tag, $at ) = self::get( $url, $post_id );

		$html = is_wp_error( $answer ) ? '' : $answer['body'];
		$page = self::between_marks( $html, $tag );
		if ( $this->pages->is_shown( get_post( $post_id ) ) ) {
			$page = self::as_shown( $html, $tag, $page );
		}
		if ( $page ) {
			$page['content'] .= self::structured_data( $html, $page['content'] );
			return array( self::PAGE, $page );
		}
		// A firewall or a limit may stop us at any page, and what is barred gets deleted.
		$trouble = $this->trouble();
		if ( '' !== $trouble ) {
			return array( self::TROUBLE, $trouble );
		}
		$broken = self::failure( $answer, $tag, self::place( $at ) !== self::place( $url ) );
		if ( '' !== $broken ) {
			return array( self::BROKEN, self::cannot_be_shown( $broken ) );
		}
		$status = (int) wp_remote_retrieve_response_code( $answer );
		if ( $status >= 400 ) {
			/* translators: %d: HTTP status */
			return array( self::BARRED, sprintf( __( 'Visitors who are not logged in do not get it (%d).', 'pagewire' ), $status ) );
		}
		if ( self::place( $at ) !== self::place( $url ) ) {
			return array( self::BARRED, __( 'Visitors who are not logged in are led elsewhere.', 'pagewire' ) );
		}
		if ( false !== strpos( $html, $tag ) ) {
			return array( self::BARRED, self::cannot_be_shown( __( 'its own code ends it.', 'pagewire' ) ) );
		}
		return array( self::BARRED, __( 'Visitors who are not logged in do not see its content: its template leaves it out, or another page has this address.', 'pagewire' ) );
	}

	/**
	 * Why nobody knows from this answer what visitors get; empty when it tells.
	 *
	 * @param array|WP_Error $answer Without the page.
	 * @param string         $tag    Of the question.
	 * @param bool           $away   Whether it comes from another address, or leads there.
	 * @return string
	 */
	private static function failure( $answer, $tag, $away ) {
		if ( is_wp_error( $answer ) ) {
			return self::no_answer( $answer );
		}
		$status = (int) wp_remote_retrieve_response_code( $answer );
		if ( $status >= 500 || in_array( $status, array( 408, 425, 429 ), true ) ) {
			/* translators: %d: HTTP status */
			return sprintf( __( 'the server answers %d.', 'pagewire' ), $status );
		}
		if ( $status >= 400 || $away ) {
			return '';
		}
		if ( $status >= 300 ) {
			return __( 'it redirects to itself without an end.', 'pagewire' );
		}
		if ( wp_remote_retrieve_header( $answer, self::HEADER ) !== $tag ) {
			return self::something_else( $status );
		}
		if ( false !== strpos( $answer['body'], $tag . self::FAILED ) ) {
			return __( 'an error ends it.', 'pagewire' );
		}
		if ( strlen( $answer['body'] ) >= self::LARGEST ) {
			return __( 'it is too long.', 'pagewire' );
		}
		return '';
	}

	/**
	 * Why this site cannot ask for its own pages; empty when it can.
	 *
	 * @return string
	 */
	public function trouble() {
		list( $answer, $tag ) = self::get( home_url( '/' ), 0 );
		if ( is_wp_error( $answer ) ) {
			$reason = self::no_answer( $answer );
		} elseif ( $tag === $answer['body'] ) {
			return '';
		} elseif ( 401 === (int) wp_remote_retrieve_response_code( $answer ) ) {
			$reason = __( 'a password stands before the whole site (401).', 'pagewire' );
		} else {
			$reason = self::something_else( (int) wp_remote_retrieve_response_code( $answer ) );
		}
		/* translators: %s: the reason */
		return sprintf( __( 'This site cannot ask for its own pages as a visitor would, so none are sent: %s Tools > Site Health says more ("loopback request").', 'pagewire' ), $reason );
	}

	/**
	 * When this request is one of ours: nothing keeps its answer, and the page's content gets marks. Only index.php asks
	 * for themes: the administration, its AJAX, cron, XML-RPC and the login do not.
	 */
	public function answer() {
		// phpcs:ignore WordPress.Security -- signed, and nothing is changed.
		$mark = isset( $_GET[ self::MARK ] ) && is_string( $_GET[ self::MARK ] ) ? $_GET[ self::MARK ] : '';
		$here = 'GET' === ( $_SERVER['REQUEST_METHOD'] ?? '' ) && wp_using_themes() && ! is_admin();
		if ( ! $here || ! preg_match( '/^(\d{1,20})-(.+)$/D', $mark, $of ) || ! Pass::is_good( self::MARK . "-$of[1]", $of[2] ) ) {
			return;
		}
		self::hide( $mark );
		$this->asked = array( (int) $of[1], self::tag( $of[2] ) );
		defined( 'DONOTCACHEPAGE' ) || define( 'DONOTCACHEPAGE', true ); // What page caches heed.
		nocache_headers();
		headers_sent() || header( self::HEADER . ': ' . $this->asked[1] );
		remove_action( 'init', 'wp_cron' ); // Others see to the clock: it may redirect, and publish what is due.
		if ( 0 === $this->asked[0] ) {
			echo esc_html( $this->asked[1] );
			exit;
		}
		if ( function_exists( 'set_time_limit' ) ) {
			set_time_limit( self::TIMEOUT );
		}
		// Where the whole site needs a login and the chat, too, an id says as whom pages are read.
		$reader = (int) apply_filters( 'pagewire_reader', 0 );
		wp_set_current_user( $reader );
		if ( $reader ) {
			add_action( 'parse_request', array( $this, 'leave_rest' ), PHP_INT_MIN );
			add_action( 'wp', array( $this, 'leave_others' ), PHP_INT_MIN );
		}
		add_filter( 'content_pagination', array( $this, 'on_one_page' ) );
		add_filter( 'the_content', array( $this, 'begin' ), PHP_INT_MIN );
		add_filter( 'the_content', array( $this, 'mark' ), PHP_INT_MAX );
		add_action( 'shutdown', array( $this, 'stopped' ), PHP_INT_MAX );
		add_action( 'wp', array( $this, 'show' ) );
	}

	/**
	 * Keeps what other people and other pages say out of a page that is read as the theme shows it: comments, and
	 * WooCommerce's reviews and suggestions, whose prices are not this product's. Kinds of pages are known by now.
	 */
	public function show() {
		if ( ! $this->pages->is_shown( get_post( $this->asked[0] ) ) ) {
			return;
		}
		add_action( 'wp_head', array( $this, 'mark_head' ), PHP_INT_MAX );
		foreach ( array( 'comments_open', 'pings_open' ) as $open ) {
			add_filter( $open, '__return_false', PHP_INT_MAX );
		}
		add_filter( 'get_comments_number', '__return_zero', PHP_INT_MAX );
		$none = static function ( $found, $query ) {
			return empty( $query->query_vars['count'] ) ? array() : 0;
		};
		add_filter( 'comments_pre_query', $none, PHP_INT_MAX, 2 );
		foreach ( array( 'woocommerce_related_products', 'woocommerce_product_get_upsell_ids', 'woocommerce_product_get_cross_sell_ids' ) as $others ) {
			add_filter( $others, '__return_empty_array', PHP_INT_MAX );
		}
	}

	/**
	 * The mark of a page whose post has no content of its own: its template makes all of it out of fields. Where there
	 * is a content, the marks around it tell whether visitors see it.
	 */
	public function mark_head() {
		list( $id, $tag ) = $this->asked;
		$post             = get_post( $id );
		if ( $post && is_singular() && get_queried_object_id() === $id && '' === trim( wp_strip_all_tags( $post->post_content ) ) ) {
			printf( '<meta name="%s" content="%s">', esc_attr( $tag ), esc_attr( bin2hex( wp_json_encode( $this->pages->about( $post ), JSON_INVALID_UTF8_SUBSTITUTE ) ) ) );
		}
	}

	/**
	 * Takes the mark out of this request: links that the page makes of its own address are as visitors get them.
	 *
	 * @param string $mark Checked.
	 */
	private static function hide( $mark ) {
		unset( $_GET[ self::MARK ], $_REQUEST[ self::MARK ] );
		foreach ( array( 'QUERY_STRING', 'REQUEST_URI' ) as $name ) {
			// phpcs:ignore WordPress.Security, WordPress.WP.AlternativeFunctions -- nothing but the mark changes.
			$_SERVER[ $name ] = rtrim( preg_replace( '/\b' . self::MARK . "=$mark&?/", '', $_SERVER[ $name ] ?? '' ), '?&' );
		}
	}

	/**
	 * The REST API does not take our mark for a login.
	 *
	 * @param \WP $wp Of this request, which has read its address.
	 */
	public function leave_rest( $wp ) {
		if ( ! empty( $wp->query_vars['rest_route'] ) ) {
			wp_set_current_user( 0 );
		}
	}

	/** The reader reads the page that is asked for, and no other. */
	public function leave_others() {
		if ( get_queried_object_id() !== $this->asked[0] ) {
			exit;
		}
	}

	/**
	 * Whether this request is ours and asks for a post.
	 *
	 * @param int $post_id A post.
	 * @return bool
	 */
	public function is_of( $post_id ) {
		return (int) $post_id === $this->asked[0];
	}

	/**
	 * A post of several pages is one for us.
	 *
	 * @param string[] $pages Parts of its content.
	 * @return string[]
	 */
	public function on_one_page( $pages ) {
		return array( implode( "\n\n", $pages ) );
	}

	/**
	 * Whether a content that is about to be made is that of the page that is asked for. Asked before all other filters:
	 * shortcodes often leave another post behind than they found.
	 *
	 * @param string $content Before all other filters.
	 * @return string
	 */
	public function begin( $content ) {
		$id            = $this->asked[0];
		$this->begun[] = is_singular() && get_queried_object_id() === $id && get_the_ID() === $id;
		return $content;
	}

	/**
	 * Puts marks around the content of the page that is asked for, with what else there is to know of it.
	 *
	 * @param string $content After all other filters.
	 * @return string
	 */
	public function mark( $content ) {
		list( $id, $tag ) = $this->asked;
		// A content may be shown within another: the marks around all of it count.
		$post             = get_post( $id ); // Null: deleted since this request began.
		if ( ! array_pop( $this->begun ) || in_array( true, $this->begun, true ) || ! $post ) {
			return $content;
		}
		$this->begun[] = true; // An excerpt may ask for the content, too.
		$about         = wp_json_encode( $this->pages->about( $post ), JSON_INVALID_UTF8_SUBSTITUTE );
		array_pop( $this->begun );
		// Empty elements that wp_kses_post() lets through; in hex, which nothing that rewrites HTML changes.
		return "<span class=\"$tag\" data-about=\"" . bin2hex( $about ) . "\"></span>$content<span class=\"$tag\"></span>";
	}

	/**
	 * The page ended while its content was made, by whatever its own code does: an opened mark tells. A fatal error has
	 * no status of its own when a part of the page was sent before.
	 */
	public function stopped() {
		$error = error_get_last();
		if ( $error && $error['type'] & self::FATAL ) {
			echo esc_html( $this->asked[1] . self::FAILED );
		} elseif ( in_array( true, $this->begun, true ) ) {
			echo esc_html( $this->asked[1] );
		}
	}

	/**
	 * The page that stands in the HTML: the longest, when the theme shows its content more than once.
	 *
	 * @param string $html Of the answer.
	 * @param string $tag  In the marks.
	 * @return array|null
	 */
	private static function between_marks( $html, $tag ) {
		$found = null;
		// What themes and caches do to HTML may change the marks a little. Text, mark, text, mark, ... text.
		$parts = (array) preg_split( "~<span\b([^<>]*\b{$tag}\b[^<>]*)></span>~", $html, -1, PREG_SPLIT_DELIM_CAPTURE );
		$last  = count( $parts ) - 2;
		for ( $at = 1; $at < $last; $at += 2 ) {
			$about = preg_match( '/data-about="?((?:[0-9a-f]{2})+)/', $parts[ $at ], $hex ) ? json_decode( hex2bin( $hex[1] ), true ) : null;
			if ( is_array( $about ) && ( ! $found || strlen( $parts[ $at + 1 ] ) > strlen( $found['content'] ) ) ) {
				$found = array( 'content' => $parts[ $at + 1 ] ) + $about;
			}
		}
		return $found;
	}

	/**
	 * What the page says of itself for machines (schema.org), which plugins write outside of its content: dates, opening
	 * hours, questions and answers.
	 *
	 * @param string $html    The whole page.
	 * @param string $content What is sent of it already.
	 * @return string Scripts of JSON-LD.
	 */
	private static function structured_data( $html, $content ) {
		$said = '';
		$end  = 0;
		while ( false !== ( $start = stripos( $html, '<script', $end ) ) ) { // phpcs:ignore Generic.CodeAnalysis
			$open = strpos( $html, '>', $start );
			$end  = $open ? stripos( $html, '</script', $open ) : false;
			if ( false === $end ) {
				break;
			}
			$data = substr( $html, $open + 1, $end - $open - 1 );
			$is_data = false !== stripos( substr( $html, $start, $open - $start ), self::TYPE );
			if ( $is_data && '' !== $data && strlen( $said ) + strlen( $data ) <= self::SAID && false === strpos( $content, $data ) ) {
				$said .= '<script type="' . self::TYPE . "\">$data</script>";
			}
		}
		return $said;
	}

	/**
	 * The page as the theme shows it. Pagewire itself drops headers, menus, sidebars and footers that say so.
	 *
	 * @param string     $html Of the answer.
	 * @param string     $tag  In the marks.
	 * @param array|null $page Between the marks.
	 * @return array|null
	 */
	private static function as_shown( $html, $tag, $page ) {
		if ( ! $page && preg_match( "~<meta\b[^<>]*\b{$tag}\b[^<>]*content=\"?((?:[0-9a-f]{2})+)~", $html, $hex ) ) {
			$page = json_decode( hex2bin( $hex[1] ), true );
		}
		// Of a page that broke off, the end of it is missing.
		if ( ! is_array( $page ) || strlen( $html ) >= self::LARGEST || false !== strpos( $html, $tag . self::FAILED ) ) {
			return null;
		}
		foreach ( array( 'main', 'body' ) as $name ) {
			$from = preg_match( "~<$name\b[^<>]*>~i", $html, $start, PREG_OFFSET_CAPTURE ) ? $start[0][1] + strlen( $start[0][0] ) : 0;
			$to   = strripos( $html, "</$name>" );
			if ( $from && $to > $from ) {
				$html = substr( $html, $from, $to - $from );
				break;
			}
		}
		return array( 'content' => preg_replace( "~<span\b[^<>]*\b{$tag}\b[^<>]*></span>~", '', $html ) ) + $page;
	}

	/**
	 * One request to ourselves. Redirects are followed as long as they stay on this server: whoever gives a password to
	 * our requests by a filter, as docs/howto/wordpress.md has it, gives it to no other.
	 *
	 * @param string $url     Where.
	 * @param int    $post_id Which post.
	 * @return array The answer or a WP_Error, what stands in its marks, and the address that it comes from or leads to.
	 */
	private static function get( $url, $post_id ) {
		$pass      = Pass::issue( self::MARK . "-$post_id" );
		$arguments = array(
			'timeout'             => self::TIMEOUT,
			'redirection'         => 0,
			'limit_response_size' => self::LARGEST,
			'user-agent'          => 'Pagewire-WordPress/' . VERSION,
			'sslverify'           => (bool) apply_filters( 'https_local_ssl_verify', false ), // phpcs:ignore WordPress.NamingConventions.PrefixAllGlobals -- as WordPress kicks its cron.
			'headers'             => array(
				'Accept'        => 'text/html',
				'Cache-Control' => 'no-cache',
			),
		);
		for ( $left = self::LED; ; --$left ) {
			$answer = wp_remote_get( add_query_arg( self::MARK, "$post_id-$pass", $url ), $arguments );
			$next   = wp_remote_retrieve_header( $answer, 'location' );
			$status = (int) wp_remote_retrieve_response_code( $answer );
			if ( $status < 300 || $status > 399 || ! is_string( $next ) || '' === $next ) {
				break;
			}
			$from = self::place( $url )[0];
			$url  = WP_Http::make_absolute_url( $next, $url );
			if ( ! $left || self::place( $url )[0] !== $from ) {
				break;
			}
		}
		return array( $answer, self::tag( $pass ), $url );
	}

	/**
	 * What makes an address another one: `www.`, https and our own mark do not.
	 *
	 * @param string $url Absolute.
	 * @return string[] Server, path and query.
	 */
	private static function place( $url ) {
		$of = (array) wp_parse_url( remove_query_arg( self::MARK, $url ) );
		return array(
			preg_replace( '/^www\./', '', strtolower( $of['host'] ?? '' ) ) . ':' . ( $of['port'] ?? '' ),
			rawurldecode( untrailingslashit( $of['path'] ?? '' ) ),
			$of['query'] ?? '',
		);
	}

	/**
	 * What stands in the marks, which no author can know.
	 *
	 * @param string $pass Of the request.
	 * @return string
	 */
	private static function tag( $pass ) {
		return 'pagewire-' . substr( hash( 'sha256', $pass ), 0, 16 );
	}

	/**
	 * Why there is no answer.
	 *
	 * @param WP_Error $error What WordPress says.
	 * @return string
	 */
	private static function no_answer( WP_Error $error ) {
		if ( false !== strpos( $error->get_error_message(), 'cURL error 28' ) ) {
			/* translators: %d: seconds */
			return sprintf( __( 'no answer within %d seconds.', 'pagewire' ), self::TIMEOUT );
		}
		return $error->get_error_message();
	}

	/**
	 * A reason, as the settings page tells it.
	 *
	 * @param string $reason Why.
	 * @return string
	 */
	private static function cannot_be_shown( $reason ) {
		/* translators: %s: the reason */
		return sprintf( __( 'This page cannot be shown: %s', 'pagewire' ), $reason );
	}

	/**
	 * Why an answer tells nothing: it is not WordPress's.
	 *
	 * @param int $status HTTP status.
	 * @return string
	 */
	private static function something_else( $status ) {
		/* translators: %d: HTTP status */
		return sprintf( __( 'something else answers before WordPress does (%d), such as a firewall or a page cache.', 'pagewire' ), $status );
	}
}
