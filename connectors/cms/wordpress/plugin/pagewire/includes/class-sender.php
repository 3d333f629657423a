<?php
/**
 * Hands over what is in the queue.
 *
 * @package Pagewire
 */

namespace Pagewire;

use Throwable;

defined( 'ABSPATH' ) || exit;

/**
 * A save kicks a request of its own that sends, and does not wait for it; every minute the clock looks for what is left.
 * What cannot be delivered is kept, and the next try comes later and later.
 */
final class Sender {

	const CRON    = 'pagewire_drain';
	const FILL    = 'pagewire_fill';
	const ROWS    = 200;     // Pages in one delivery; Pagewire takes 500.
	const BYTES   = 2000000; // Of one delivery, unless a single page is larger.
	const RUN     = 20;      // Seconds that one request goes on sending.
	const LONGEST = 300;     // Seconds between two tries.
	const PATIENT = 3600;    // Seconds, when Pagewire asks for them.
	const KNOCK   = 0.5;     // Seconds that our own web server may take to accept a connection.

	/**
	 * Whether there is somewhere to send to.
	 *
	 * @var Settings
	 */
	private $settings;

	/**
	 * What waits.
	 *
	 * @var Queue
	 */
	private $queue;

	/**
	 * What the pages are now.
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
	 * Takes what it needs.
	 *
	 * @param Settings $settings Whether there is somewhere to send to.
	 * @param Queue    $queue    What waits.
	 * @param Pages    $pages    What the pages are now.
	 * @param Endpoint $endpoint The way to Pagewire.
	 */
	public function __construct( Settings $settings, Queue $queue, Pages $pages, Endpoint $endpoint ) {
		$this->settings = $settings;
		$this->queue    = $queue;
		$this->pages    = $pages;
		$this->endpoint = $endpoint;
	}

	/** Connects to the clock and to the end of each request. */
	public function register() {
		// phpcs:ignore WordPress.WP.CronInterval -- a save that could not be kicked should not wait for long.
		add_filter( 'cron_schedules', array( $this, 'minute' ) );
		add_action( self::CRON, array( $this, 'drain' ) );
		add_action( 'init', array( $this, 'ensure_clock' ) );
		// After WordPress has sent what it has to say to whoever saved.
		add_action( 'shutdown', array( $this, 'kick_after_save' ), 1000 );
	}

	/**
	 * A minute, for the clock.
	 *
	 * @param array $schedules Known ones.
	 * @return array
	 */
	public function minute( $schedules ) {
		$schedules['pagewire_minute'] = array(
			'interval' => MINUTE_IN_SECONDS,
			'display'  => __( 'Every minute', 'pagewire' ),
		);
		return $schedules;
	}

	/** The clock runs as long as the plugin is active. */
	public function ensure_clock() {
		if ( ! wp_next_scheduled( self::CRON ) ) {
			wp_schedule_event( time(), 'pagewire_minute', self::CRON );
		}
	}

	/** Sends at once what this request queued, unless Pagewire is known to be away. */
	public function kick_after_save() {
		if ( $this->queue->touched() && $this->settings->ready() && Settings::state()['until'] <= time() ) {
			if ( function_exists( 'fastcgi_finish_request' ) ) {
				fastcgi_finish_request();
			}
			$this->kick();
		}
	}

	/**
	 * Starts a request to ourselves and does not wait for what comes of it. Not wp_remote_post(): without `blocking` that
	 * still waits for the first answer, which is as long as WordPress takes to start.
	 */
	public function kick() {
		$url    = wp_parse_url( rest_url( Routes::SPACE . '/drain' ) );
		$tls    = 'https' === $url['scheme'];
		$port   = $url['port'] ?? ( $tls ? 443 : 80 );
		$verify = (bool) apply_filters( 'https_local_ssl_verify', false ); // phpcs:ignore WordPress.NamingConventions.PrefixAllGlobals -- as WordPress kicks its cron.
		$about  = array(
			'verify_peer'      => $verify,
			'verify_peer_name' => $verify,
			'peer_name'        => $url['host'],
		);
		$time   = (string) time();
		$lines  = array(
			'POST ' . ( $url['path'] ?? '/' ) . ( isset( $url['query'] ) ? '?' . $url['query'] : '' ) . ' HTTP/1.1',
			'Host: ' . $url['host'] . ( isset( $url['port'] ) ? ':' . $url['port'] : '' ),
			'Connection: close',
			'Content-Length: 0',
			'X-Pagewire-Time: ' . $time,
			'X-Pagewire-Token: ' . self::token( $time ),
		);
		// phpcs:disable WordPress.WP.AlternativeFunctions, WordPress.PHP.NoSilencedErrors -- a socket; who does not answer is left to the clock.
		$socket = @stream_socket_client( ( $tls ? 'tls://' : 'tcp://' ) . $url['host'] . ":$port", $code, $error, self::KNOCK, STREAM_CLIENT_CONNECT, stream_context_create( array( 'ssl' => $about ) ) );
		if ( $socket ) {
			@fwrite( $socket, implode( "\r\n", $lines ) . "\r\n\r\n" );
			fclose( $socket );
		}
		// phpcs:enable
	}

	/**
	 * What a kick proves that it is ours with.
	 *
	 * @param string $time Seconds since 1970.
	 * @return string
	 */
	public static function token( $time ) {
		return hash_hmac( 'sha256', 'pagewire-drain|' . $time, wp_salt( 'nonce' ) );
	}

	/** Queues all public pages, in the bulk lane, and those that were public once. */
	public function send_everything() {
		global $wpdb;
		list( $those, $values ) = $this->public_posts();
		// phpcs:ignore WordPress.DB -- $those holds placeholders only.
		$total = (int) $wpdb->get_var( $wpdb->prepare( "SELECT COUNT(*) FROM {$wpdb->posts} WHERE $those", array_merge( $values, array( 0 ) ) ) );
		$fill  = array(
			'after' => 0,
			'done'  => 0,
			'total' => $total,
			'run'   => wp_generate_uuid4(),
		);
		update_option( self::FILL, $fill, false );
		$this->queue->touch_all();
	}

	/**
	 * Delivers until nothing is left, the time is up or a delivery fails. One process at a time.
	 */
	public function drain() {
		if ( ! $this->settings->ready() || Settings::state()['until'] > time() ) {
			return;
		}
		// What is sent is what somebody sees who is not logged in.
		wp_set_current_user( 0 );
		$end  = time() + self::RUN;
		$well = true;
		$ran  = $this->queue->alone(
			function () use ( $end, &$well ) {
				$most = self::ROWS;
				do {
					// Another process may have saved what we remember; and our memory must not grow.
					$again = $this->forget();
					$most  = $this->step( $most );
					$well  = $most > 0;
				} while ( $well && $this->more() && $again && time() < $end );
			}
		);
		// A save that came when we were through but still held the lock was told that somebody is at it.
		if ( $ran && $well && $this->more() ) {
			$this->kick();
		}
	}

	/**
	 * Whether anything is left to do.
	 *
	 * @return bool
	 */
	private function more() {
		return (bool) $this->queue->length() || $this->fill();
	}

	/**
	 * Delivers once.
	 *
	 * @param int $most Pages at most.
	 * @return int How many the next delivery may have; 0 when this one failed and it is time to wait.
	 */
	private function step( $most ) {
		$rows = $this->queue->next( Queue::SAVE, $most );
		if ( ! $rows ) {
			$rows = $this->queue->next( Queue::BULK, $most );
			if ( ! $rows ) {
				$this->take_in();
				return $most;
			}
		}
		list( $sent, $body ) = $this->delivery( $rows );
		if ( ! $sent ) {
			return $most;
		}
		$answer  = $this->endpoint->post( $body, Queue::BULK === (int) $rows[0]->queued );
		$problem = $this->endpoint->problem( $answer );
		if ( '' === $problem && count( $sent ) === $answer['data']['accepted'] + $answer['data']['rejected'] + $answer['data']['superseded'] ) {
			$this->delivered( $sent, $answer['data']['errors'] );
			return $most;
		}
		if ( 413 === $answer['status'] ) {
			if ( count( $sent ) > 1 ) {
				return (int) ceil( count( $sent ) / 2 );
			}
			$this->queue->settle( $sent, $problem ); // This page alone: the others must not wait for it.
			return $most;
		}
		$tries = Settings::state()['tries'] + 1;
		$pause = $answer['retry_after'] ? min( self::PATIENT, $answer['retry_after'] ) : min( self::LONGEST, 2 ** min( 9, $tries ) );
		Settings::note(
			array(
				'tries'   => $tries,
				'until'   => time() + $pause,
				'problem' => '' === $problem ? __( 'Pagewire did not account for everything that it was sent.', 'pagewire' ) : $problem,
			)
		);
		return 0;
	}

	/**
	 * The rows that go together, as many as fit, and the lines that say what became of them.
	 *
	 * @param object[] $rows Of the queue.
	 * @return array Rows and body.
	 */
	private function delivery( array $rows ) {
		_prime_post_caches( array_map( 'intval', wp_list_pluck( $rows, 'post_id' ) ), true, true );
		$sent = array();
		$body = '';
		foreach ( $rows as $row ) {
			ob_start(); // What a page's own code prints belongs to nobody here.
			try {
				$line = $this->line( $row );
			} catch ( Throwable $error ) {
				/* translators: %s: error message */
				$this->queue->settle( array( $row ), sprintf( __( 'This page cannot be shown: %s', 'pagewire' ), $error->getMessage() ) );
				continue;
			} finally {
				ob_end_clean();
			}
			if ( $sent && strlen( $body ) + strlen( $line ) > self::BYTES ) {
				break;
			}
			$sent[] = $row;
			$body  .= $line . "\n";
		}
		return array( $sent, $body );
	}

	/**
	 * What became of a page, as it is now.
	 *
	 * @param object $row Of the queue.
	 * @return string JSON.
	 */
	private function line( $row ) {
		$post   = $row->gone ? null : get_post( (int) $row->post_id );
		$exists = $this->pages->is_public( $post ) && Pages::id( $post ) === $row->page_id && $this->pages->lang( $post ) === $row->lang;
		$page   = array(
			'id'       => $row->page_id,
			'lang'     => $row->lang,
			'revision' => (int) $row->revision,
		);
		$line   = array(
			'op'   => $exists ? 'upsert' : 'delete',
			'page' => $exists ? $this->pages->document( $post, $row->lang, (int) $row->revision ) : $page,
		);
		return (string) wp_json_encode( $line, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE );
	}

	/**
	 * Takes out what was delivered, and keeps Pagewire's reasons for what it does not want.
	 *
	 * @param object[] $sent   Rows, in the order of their lines.
	 * @param array    $errors Of the answer.
	 */
	private function delivered( array $sent, array $errors ) {
		$taken = $sent;
		foreach ( $errors as $error ) {
			$at = isset( $error['line'] ) ? (int) $error['line'] - 1 : -1;
			if ( isset( $sent[ $at ] ) ) {
				$code    = isset( $error['code'] ) ? (string) $error['code'] : '';
				$message = isset( $error['message'] ) ? (string) $error['message'] : '';
				$this->queue->settle( array( $sent[ $at ] ), sanitize_text_field( "$code: $message" ) );
				unset( $taken[ $at ] );
			}
		}
		$this->queue->settle( $taken );
		Settings::note(
			array(
				'tries'     => 0,
				'until'     => 0,
				'problem'   => '',
				'delivered' => time(),
				'pages'     => count( $taken ),
			)
		);
	}

	/** The next pages of sending everything go into the queue: never all of them at once. */
	private function take_in() {
		global $wpdb;
		$fill = $this->fill();
		if ( ! $fill ) {
			return;
		}
		list( $those, $values ) = $this->public_posts();
		// phpcs:ignore WordPress.DB -- $those holds placeholders only.
		$ids = array_map( 'intval', $wpdb->get_col( $wpdb->prepare( "SELECT ID FROM {$wpdb->posts} WHERE $those ORDER BY ID LIMIT %d", array_merge( $values, array( $fill['after'], self::ROWS ) ) ) ) );
		_prime_post_caches( $ids, true, false );
		$this->queue->add( array_map( array( $this->pages, 'row' ), array_filter( array_map( 'get_post', $ids ) ) ), Queue::BULK );
		$next = $ids ? array_merge(
			$fill,
			array(
				'after' => end( $ids ),
				'done'  => $fill['done'] + count( $ids ),
			)
		) : array();
		// Only from where we were: somebody may have begun anew.
		$wpdb->update( // phpcs:ignore WordPress.DB -- compare and swap.
			$wpdb->options,
			array( 'option_value' => maybe_serialize( $next ) ),
			array(
				'option_name'  => self::FILL,
				'option_value' => maybe_serialize( $fill ),
			)
		);
		wp_cache_delete( self::FILL, 'options' );
	}

	/**
	 * How far sending everything is; empty when that is not going on.
	 *
	 * @return array
	 */
	public function fill() {
		wp_cache_delete( self::FILL, 'options' );
		$fill = get_option( self::FILL, array() );
		return is_array( $fill ) ? $fill : array();
	}

	/**
	 * Condition and values for public posts beyond an id, which comes last.
	 *
	 * @return array
	 */
	private function public_posts() {
		$types = $this->settings->types();
		$in    = $types ? implode( ', ', array_fill( 0, count( $types ), '%s' ) ) : "''";
		return array( "post_status = 'publish' AND post_password = '' AND post_type IN ($in) AND ID > %d", $types );
	}

	/**
	 * Forgets posts and settings that were read before.
	 *
	 * @return bool False: this cache cannot forget, another request must go on.
	 */
	private function forget() {
		if ( ! wp_using_ext_object_cache() ) {
			return wp_cache_flush(); // Only our own memory.
		}
		if ( function_exists( 'wp_cache_supports' ) && wp_cache_supports( 'flush_runtime' ) ) {
			return wp_cache_flush_runtime();
		}
		return false;
	}
}
