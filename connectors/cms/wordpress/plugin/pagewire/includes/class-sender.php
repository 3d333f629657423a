<?php
/**
 * Hands over what is in the queue.
 *
 * @package Pagewire
 */

namespace Pagewire;

defined( 'ABSPATH' ) || exit;

/**
 * A save kicks a request of its own that sends, and does not wait for it; every minute the clock looks for what is left.
 * What cannot be delivered is kept, and the next try comes later and later.
 */
final class Sender {

	const CRON    = 'pagewire_drain';
	const FILL    = 'pagewire_fill';
	const ASKED   = 'pagewire_asked';
	const ROWS    = 200;     // Pages in one delivery; Pagewire takes 500.
	const BYTES   = 2000000; // Of one delivery, unless a single page is larger.
	const ASKING  = 2;       // Seconds after which a delivery asks for no more pages: a save that came in between goes next.
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
	 * Which pages are public.
	 *
	 * @var Pages
	 */
	private $pages;

	/**
	 * What the pages are now.
	 *
	 * @var Visit
	 */
	private $visit;

	/**
	 * The way to Pagewire.
	 *
	 * @var Endpoint
	 */
	private $endpoint;

	/**
	 * Why no page can be asked for; empty when they can.
	 *
	 * @var string
	 */
	private $trouble = '';

	/**
	 * Takes what it needs.
	 *
	 * @param Settings $settings Whether there is somewhere to send to.
	 * @param Queue    $queue    What waits.
	 * @param Pages    $pages    Which pages are public.
	 * @param Visit    $visit    What the pages are now.
	 * @param Endpoint $endpoint The way to Pagewire.
	 */
	public function __construct( Settings $settings, Queue $queue, Pages $pages, Visit $visit, Endpoint $endpoint ) {
		$this->settings = $settings;
		$this->queue    = $queue;
		$this->pages    = $pages;
		$this->visit    = $visit;
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
		$lines  = array(
			'POST ' . ( $url['path'] ?? '/' ) . ( isset( $url['query'] ) ? '?' . $url['query'] : '' ) . ' HTTP/1.1',
			'Host: ' . $url['host'] . ( isset( $url['port'] ) ? ':' . $url['port'] : '' ),
			'Connection: close',
			'Content-Length: 0',
			'X-Pagewire-Pass: ' . Pass::issue( self::CRON ),
		);
		// phpcs:disable WordPress.WP.AlternativeFunctions, WordPress.PHP.NoSilencedErrors -- a socket; who does not answer is left to the clock.
		$socket = @stream_socket_client( ( $tls ? 'tls://' : 'tcp://' ) . $url['host'] . ":$port", $code, $error, self::KNOCK, STREAM_CLIENT_CONNECT, stream_context_create( array( 'ssl' => $about ) ) );
		if ( $socket ) {
			@fwrite( $socket, implode( "\r\n", $lines ) . "\r\n\r\n" );
			fclose( $socket );
		}
		// phpcs:enable
	}

	/** Queues all public pages, in the bulk lane, and those that were public once. */
	public function send_everything() {
		global $wpdb;
		// phpcs:ignore WordPress.DB -- prepared.
		$total = (int) $wpdb->get_var( "SELECT COUNT(*) FROM {$wpdb->posts} WHERE {$this->public_posts()}" );
		$this->queue->touch_all();
		$fill = array(
			'after' => 0,
			'done'  => $this->queue->length(),
			'total' => $total,
			'run'   => wp_generate_uuid4(),
		);
		update_option( self::FILL, $fill, false );
	}

	/**
	 * Delivers until nothing is left, the time is up or a delivery fails. One process at a time.
	 */
	public function drain() {
		if ( ! $this->settings->ready() || Settings::state()['until'] > time() ) {
			return;
		}
		$end  = time() + self::RUN;
		$well = true;
		$ran  = $this->queue->alone(
			function () use ( $end, &$well ) {
				$most = self::ROWS;
				if ( Settings::state()['retried'] < time() - DAY_IN_SECONDS ) {
					Settings::note( array( 'retried' => time() ) );
					$this->queue->retry();
				}
				$this->queue->retry_failed();
				do {
					// Another process may have saved what we remember; and our memory must not grow.
					$again = $this->forget();
					$most  = $this->step( $most );
					$well  = $most > 0;
				} while ( $well && $this->more() && $again && time() < $end );
				if ( '' !== $this->trouble || ( $well && '' !== Settings::state()['problem'] ) ) {
					Settings::note( array( 'problem' => $this->trouble ) );
				}
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
		$public = '' === $this->trouble ? '' : $this->public_posts(); // Deletes need no asking.
		$rows   = $this->queue->next( Queue::SAVE, $most, $public );
		if ( ! $rows ) {
			$rows = $this->queue->next( Queue::BULK, $most, $public );
		}
		if ( ! $rows && '' !== $public ) {
			return 0;
		}
		if ( ! $rows ) {
			$this->take_in();
			return $most;
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
		_prime_post_caches( array_map( 'intval', wp_list_pluck( $rows, 'post_id' ) ), true, false );
		$sent = array();
		$body = '';
		$end  = microtime( true ) + self::ASKING;
		$died = get_option( self::ASKED );
		foreach ( $rows as $row ) {
			$line = $this->line( $row, is_array( $died ) ? $died : array() );
			if ( '' !== $line && $sent && strlen( $body ) + strlen( $line ) > self::BYTES ) {
				break;
			}
			if ( '' !== $line ) {
				$sent[] = $row;
				$body  .= $line . "\n";
			}
			if ( '' !== $this->trouble || microtime( true ) > $end ) {
				break;
			}
		}
		update_option( self::ASKED, array(), false );
		return array( $sent, $body );
	}

	/**
	 * What became of a page, as it is now.
	 *
	 * @param object $row  Of the queue.
	 * @param array  $died What was asked for when the last run ended without a word.
	 * @return string JSON; empty when there is nothing to send.
	 */
	private function line( $row, array $died ) {
		$post   = $row->gone ? null : get_post( (int) $row->post_id );
		$now    = $this->pages->is_public( $post ) ? $this->pages->row( $post ) : null;
		$page   = array(
			'id'       => $row->page_id,
			'lang'     => $row->lang,
			'revision' => (int) $row->revision,
		);
		$op     = 'delete';
		$barred = '';
		if ( $now && array( $now['page_id'], $now['lang'] ) !== array( $row->page_id, $row->lang ) ) {
			$this->queue->add( array( $now ) ); // Nothing told that it has another language.
		} elseif ( $now ) {
			list( $found, $about ) = $this->asked( $page, $post->ID, $died );
			if ( Visit::TROUBLE === $found ) {
				$this->trouble = $about;
				return '';
			}
			if ( Visit::BROKEN === $found ) {
				// Once more in minutes, then once a day.
				$this->queue->settle( array( $row ), $about, '' === $row->refusal ? Queue::LATER : Queue::DONE );
				return '';
			}
			if ( Visit::PAGE === $found ) {
				$op   = 'upsert';
				$page = $page + $about;
			} else {
				$barred = $about;
			}
		}
		$this->queue->bar( $row, $barred );
		$line = array(
			'op'   => $op,
			'page' => $page,
		);
		return (string) wp_json_encode( $line, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE );
	}

	/**
	 * Asks for a page, and keeps in the database that it does: a page that ends the run twice is not asked for again.
	 *
	 * @param array $page    Id, language and revision.
	 * @param int   $post_id Its post.
	 * @param array $died    What was asked for when the last run ended without a word.
	 * @return array As Visit::ask() gives it.
	 */
	private function asked( array $page, $post_id, array $died ) {
		$tries = isset( $died['page'] ) && $died['page'] === $page ? $died['tries'] + 1 : 1;
		if ( $tries > 2 ) {
			return array( Visit::BROKEN, __( 'This page cannot be shown: whoever asks for it is stopped by the server.', 'pagewire' ) );
		}
		update_option( self::ASKED, compact( 'page', 'tries' ), false );
		return $this->visit->ask( $post_id );
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
		// phpcs:ignore WordPress.DB -- public_posts() is prepared.
		$ids = array_map( 'intval', $wpdb->get_col( $wpdb->prepare( "SELECT ID FROM {$wpdb->posts} WHERE {$this->public_posts()} AND ID > %d ORDER BY ID LIMIT %d", $fill['after'], self::ROWS ) ) );
		$new = array_diff( $ids, $this->queue->known( $ids ) ); // The others were queued at once.
		_prime_post_caches( $new, true, false );
		$this->queue->add( array_map( array( $this->pages, 'row' ), array_filter( array_map( 'get_post', $new ) ) ), Queue::BULK );
		$next = $ids ? array_merge(
			$fill,
			array(
				'after' => end( $ids ),
				'done'  => $fill['done'] + count( $new ),
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
	 * Condition for public posts.
	 *
	 * @return string Prepared.
	 */
	private function public_posts() {
		global $wpdb;
		$types = $this->settings->types();
		$in    = implode( ', ', array_fill( 0, count( $types ), '%s' ) );
		// phpcs:ignore WordPress.DB -- $in holds placeholders only.
		$of = $types ? $wpdb->prepare( "post_type IN ($in)", $types ) : '1 = 0';
		return "post_status = 'publish' AND post_password = '' AND $of";
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
