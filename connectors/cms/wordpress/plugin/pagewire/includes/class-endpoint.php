<?php
/**
 * The way to Pagewire: signed requests, and what their answers mean.
 *
 * @package Pagewire
 */

namespace Pagewire;

defined( 'ABSPATH' ) || exit;

/** POST /v1/sites/{site}/webhooks/{connector}, signed as https://www.standardwebhooks.com says. */
final class Endpoint {

	const TIMEOUT = 30;      // Seconds for one delivery.
	const LARGEST = 1000000; // Bytes of an answer that are read.
	const SKEW    = 60;      // Seconds that two clocks may differ before it is worth a word; 300 are refused.

	/**
	 * Where and with which secret.
	 *
	 * @var Settings
	 */
	private $settings;

	/**
	 * Takes what it needs.
	 *
	 * @param Settings $settings Where and with which secret.
	 */
	public function __construct( Settings $settings ) {
		$this->settings = $settings;
	}

	/**
	 * Sends one delivery.
	 *
	 * @param string $body NDJSON; empty to test the connection.
	 * @param bool   $bulk No editor waits for it.
	 * @return array `status` (0: no answer), `data` (its JSON object or null), `error` (why there is no answer),
	 *               `retry_after` in seconds, `skew`: seconds that our clock is ahead of theirs, null when unknown.
	 */
	public function post( $body, $bulk = false ) {
		$all = $this->settings->all();
		$url = $this->settings->endpoint() . '/v1/sites/' . rawurlencode( $all['site'] ) . '/webhooks/' . rawurlencode( $all['connector'] );
		$key = Settings::key( $this->settings->secret() );
		if ( null === $key ) {
			return self::none( __( 'The secret is not one: it begins with whsec_ and is made together with the connector.', 'pagewire' ) );
		}
		$id      = 'msg_' . wp_generate_uuid4();
		$time    = (string) time();
		$headers = array(
			'Content-Type'      => 'application/x-ndjson',
			'webhook-id'        => $id,
			'webhook-timestamp' => $time,
			'webhook-signature' => 'v1,' . base64_encode( hash_hmac( 'sha256', "$id.$time.$body", $key, true ) ), // phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions
		);
		if ( $bulk ) {
			$headers['Pagewire-Lane'] = 'bulk';
		}
		$answer = $this->guarded(
			$url,
			array(
				'method'              => 'POST',
				'timeout'             => self::TIMEOUT,
				'redirection'         => 0, // What is signed for one server is not for another.
				'limit_response_size' => self::LARGEST,
				'user-agent'          => 'Pagewire-WordPress/' . VERSION,
				'headers'             => $headers,
				'body'                => $body,
			)
		);
		if ( is_wp_error( $answer ) ) {
			return self::none( $this->no_answer( $answer->get_error_message() ) );
		}
		$data = json_decode( wp_remote_retrieve_body( $answer ), true );
		$date = strtotime( (string) wp_remote_retrieve_header( $answer, 'date' ) );
		return array(
			'status'      => (int) wp_remote_retrieve_response_code( $answer ),
			'data'        => is_array( $data ) ? $data : null,
			'error'       => '',
			'retry_after' => max( 0, (int) wp_remote_retrieve_header( $answer, 'retry-after' ) ),
			'skew'        => false === $date ? null : (int) $time - $date,
		);
	}

	/**
	 * Reads what Pagewire gives everybody of this site.
	 *
	 * @param string $path    Below the site, with its query.
	 * @param string $etag    Of what is known already; empty when nothing is.
	 * @param int    $timeout Seconds.
	 * @param int    $largest Bytes of an answer that are read.
	 * @return array|\WP_Error
	 */
	public function get( $path, $etag, $timeout, $largest ) {
		return $this->guarded(
			$this->settings->endpoint() . '/v1/sites/' . rawurlencode( $this->settings->all()['site'] ) . "/$path",
			array(
				'method'              => 'GET',
				'timeout'             => $timeout,
				'redirection'         => 0,
				'limit_response_size' => $largest,
				'user-agent'          => 'Pagewire-WordPress/' . VERSION,
				'headers'             => '' === $etag ? array() : array( 'If-None-Match' => $etag ),
			)
		);
	}

	/**
	 * What an answer means, for whoever reads the settings page; empty when it is a good one. Nothing of the answer's
	 * own text is repeated except Pagewire's word for a bad signature: the address may be somebody else's.
	 *
	 * @param array $answer Of post().
	 * @return string
	 */
	public function problem( array $answer ) {
		$status = $answer['status'];
		$skew   = $answer['skew'];
		$code   = isset( $answer['data']['code'] ) ? (string) $answer['data']['code'] : '';
		if ( 0 === $status ) {
			return $answer['error'];
		}
		if ( 200 === $status ) {
			return self::is_result( $answer ) ? '' : __( 'Something answers at this address, but it is not Pagewire. Is the address right?', 'pagewire' );
		}
		if ( 401 === $status && null !== $skew && abs( $skew ) > 300 ) {
			/* translators: 1: seconds, 2: "ahead" or "behind" */
			return sprintf( __( 'Pagewire refuses the signature (401) because the clocks differ: this server is %1$d seconds %2$s. Set the clock of the one that is wrong.', 'pagewire' ), abs( $skew ), $skew > 0 ? __( 'ahead', 'pagewire' ) : __( 'behind', 'pagewire' ) );
		}
		if ( 401 === $status && 'bad-signature' === $code ) {
			return __( 'Pagewire refuses the signature (401): the secret here is not the one in pagewire.yaml. Paste it again.', 'pagewire' );
		}
		if ( 404 === $status && 'unknown-connector' === $code ) {
			return __( 'Pagewire is there, but has no such connector for this site (404). Compare Site and Connector with sites: and connectors: in pagewire.yaml, and restart Pagewire after a change.', 'pagewire' );
		}
		if ( 404 === $status ) {
			return __( 'There is a server at this address, but no Pagewire (404). Is the address right, without a path behind it?', 'pagewire' );
		}
		if ( 413 === $status ) {
			return __( 'Pagewire finds the delivery too large (413).', 'pagewire' );
		}
		if ( 429 === $status || 503 === $status ) {
			/* translators: %d: HTTP status */
			return sprintf( __( 'Pagewire is there, but cannot take anything just now (%d). Everything is kept and sent later.', 'pagewire' ), $status );
		}
		if ( $status >= 300 && $status < 400 ) {
			/* translators: %d: HTTP status */
			return sprintf( __( 'This address redirects to another one (%d). Enter the one it leads to, often with https://.', 'pagewire' ), $status );
		}
		/* translators: %d: HTTP status */
		return sprintf( __( 'The server answered with status %d. Its log says more.', 'pagewire' ), $status );
	}

	/**
	 * Whether it is Pagewire's account of a delivery: a proxy's friendly page is also a 200.
	 *
	 * @param array $answer Of post().
	 * @return bool
	 */
	public static function is_result( array $answer ) {
		foreach ( array( 'accepted', 'rejected', 'superseded' ) as $count ) {
			if ( ! isset( $answer['data'][ $count ] ) || ! is_int( $answer['data'][ $count ] ) ) {
				return false;
			}
		}
		return 200 === $answer['status'] && isset( $answer['data']['errors'] ) && is_array( $answer['data']['errors'] );
	}

	/**
	 * Whether WordPress itself would fetch from an address: a public one, on a usual port.
	 *
	 * @param string $url A URL.
	 * @return bool
	 */
	public static function is_external( $url ) {
		return (bool) wp_http_validate_url( $url );
	}

	/**
	 * A request that goes nowhere but to public addresses, and to the one in the settings if that may be private.
	 *
	 * @param string $url       Where.
	 * @param array  $arguments For wp_safe_remote_request().
	 * @return array|\WP_Error
	 */
	private function guarded( $url, array $arguments ) {
		if ( ! $this->settings->may_be_private() ) {
			return wp_safe_remote_request( $url, $arguments );
		}
		$own   = wp_parse_url( $url );
		$hosts = static function ( $external, $host ) use ( $own ) {
			return $external || strtolower( $host ) === strtolower( isset( $own['host'] ) ? $own['host'] : '' );
		};
		$ports = static function ( $ports, $host ) use ( $own ) {
			return isset( $own['host'], $own['port'] ) && $host === $own['host'] ? array_merge( $ports, array( $own['port'] ) ) : $ports;
		};
		add_filter( 'http_request_host_is_external', $hosts, 10, 2 );
		add_filter( 'http_allowed_safe_ports', $ports, 10, 2 );
		try {
			return wp_safe_remote_request( $url, $arguments );
		} finally {
			remove_filter( 'http_request_host_is_external', $hosts );
			remove_filter( 'http_allowed_safe_ports', $ports );
		}
	}

	/**
	 * Why a request came to nothing, in plain words.
	 *
	 * @param string $message What WordPress says.
	 * @return string
	 */
	private function no_answer( $message ) {
		$host   = (string) wp_parse_url( $this->settings->endpoint(), PHP_URL_HOST );
		$number = preg_match( '/cURL error (\d+)/', $message, $found ) ? (int) $found[1] : 0;
		// WordPress looks the name up before it asks, and calls what it does not find "not a valid URL".
		$unknown = 0 === $number && '' !== $host && ! filter_var( trim( $host, '[]' ), FILTER_VALIDATE_IP ) && gethostbyname( $host ) === $host;
		if ( 6 === $number || $unknown ) {
			/* translators: %s: host name */
			return sprintf( __( 'There is no server named %s: this name cannot be looked up (DNS). Is it spelled right?', 'pagewire' ), $host );
		}
		if ( 7 === $number ) {
			/* translators: %s: host name */
			return sprintf( __( 'Nothing answers at %s: the connection was refused. Is Pagewire running, is the port right, does a firewall let this server through?', 'pagewire' ), $host );
		}
		if ( 28 === $number ) {
			/* translators: 1: host name, 2: seconds */
			return sprintf( __( '%1$s did not answer within %2$d seconds.', 'pagewire' ), $host, self::TIMEOUT );
		}
		if ( in_array( $number, array( 35, 51, 58, 59, 60, 77 ), true ) ) {
			/* translators: %s: host name */
			return sprintf( __( 'There is no secure connection to %s: its certificate cannot be verified (TLS).', 'pagewire' ), $host );
		}
		if ( ! $this->settings->may_be_private() && ! self::is_external( $this->settings->endpoint() ) ) {
			/* translators: %s: host name */
			return sprintf( __( '%s is inside a private network or on an unusual port. Somebody who may install plugins has to save such an address, or PAGEWIRE_ENDPOINT in wp-config.php names it.', 'pagewire' ), $host );
		}
		return $message;
	}

	/**
	 * No answer.
	 *
	 * @param string $error Why.
	 * @return array As post() returns it.
	 */
	private static function none( $error ) {
		return array(
			'status'      => 0,
			'data'        => null,
			'error'       => $error,
			'retry_after' => 0,
			'skew'        => null,
		);
	}
}
