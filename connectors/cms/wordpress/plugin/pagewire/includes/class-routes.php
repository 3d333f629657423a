<?php
/**
 * Our routes in the REST API.
 *
 * @package Pagewire
 */

namespace Pagewire;

use WP_REST_Request;
use WP_REST_Response;

defined( 'ABSPATH' ) || exit;

/** `drain` is for our own kick; `site` and the field `pagewire` of posts tell the puller what only the plugin knows. */
final class Routes {

	const SPACE = 'pagewire/v1';

	/**
	 * Which post types are sent.
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
	 * Knows what visitors do not get.
	 *
	 * @var Queue
	 */
	private $queue;

	/**
	 * Sends.
	 *
	 * @var Sender
	 */
	private $sender;

	/**
	 * Posts that visitors do not get, once they were asked for.
	 *
	 * @var array|null
	 */
	private $barred = null;

	/**
	 * Takes what it needs.
	 *
	 * @param Settings $settings Which post types are sent.
	 * @param Pages    $pages    Languages.
	 * @param Queue    $queue    Knows what visitors do not get.
	 * @param Sender   $sender   Sends.
	 */
	public function __construct( Settings $settings, Pages $pages, Queue $queue, Sender $sender ) {
		$this->settings = $settings;
		$this->pages    = $pages;
		$this->queue    = $queue;
		$this->sender   = $sender;
	}

	/** Waits for the REST API. */
	public function register() {
		add_action( 'rest_api_init', array( $this, 'routes' ) );
	}

	/** Makes the routes. */
	public function routes() {
		register_rest_route(
			self::SPACE,
			'/drain',
			array(
				'methods'             => 'POST',
				'callback'            => array( $this, 'drain' ),
				'permission_callback' => array( $this, 'is_ours' ),
			)
		);
		register_rest_route(
			self::SPACE,
			'/site',
			array(
				'methods'             => 'GET',
				'callback'            => array( $this, 'site' ),
				'permission_callback' => '__return_true', // The language and the kinds of pages are for all to see.
			)
		);
		register_rest_field(
			$this->settings->types(),
			'pagewire',
			array(
				'get_callback' => array( $this, 'of_post' ),
				'schema'       => array(
					'description' => __( 'What Pagewire is told of the page beside what stands here anyway.', 'pagewire' ),
					'type'        => 'object',
					'context'     => array( 'view' ),
					'readonly'    => true,
					'properties'  => array(
						'lang'        => array( 'type' => 'string' ),
						'description' => array( 'type' => 'string' ),
					),
				),
			)
		);
	}

	/**
	 * Whether a kick is ours and not an old one.
	 *
	 * @param WP_REST_Request $request The kick.
	 * @return bool
	 */
	public function is_ours( WP_REST_Request $request ) {
		return Pass::is_good( Sender::CRON, (string) $request->get_header( 'x_pagewire_pass' ) );
	}

	/** Lets whoever kicked go, and sends. */
	public function drain() {
		ignore_user_abort( true );
		if ( function_exists( 'set_time_limit' ) ) {
			set_time_limit( Sender::RUN + 2 * Endpoint::TIMEOUT );
		}
		ini_set( 'zlib.output_compression', '0' ); // phpcs:ignore WordPress.PHP.IniSet -- the length below would be wrong.
		if ( ! headers_sent() ) {
			header( 'Connection: close' );
			header( 'Content-Length: 2' );
		}
		echo '{}';
		wp_ob_end_flush_all();
		flush();
		if ( function_exists( 'fastcgi_finish_request' ) ) {
			fastcgi_finish_request();
		}
		$this->sender->drain();
		exit;
	}

	/**
	 * What the puller needs to see the same pages as the plugin.
	 *
	 * @return WP_REST_Response
	 */
	public function site() {
		return new WP_REST_Response(
			array(
				'lang'  => $this->pages->site_lang(),
				'types' => $this->settings->types(),
				'shown' => $this->settings->shown(),
			)
		);
	}

	/**
	 * The language of a post, and its excerpt if somebody wrote one.
	 *
	 * @param array $data The post so far.
	 * @return array|null Null when it is not for everybody.
	 */
	public function of_post( $data ) {
		$post = get_post( isset( $data['id'] ) ? (int) $data['id'] : 0 );
		$this->barred = $this->barred ?? $this->queue->barred();
		if ( ! $this->pages->is_public( $post ) || isset( $this->barred[ $post->ID ] ) ) {
			return null;
		}
		return array(
			'lang'        => $this->pages->lang( $post ),
			'description' => Pages::description( $post ),
		);
	}
}
