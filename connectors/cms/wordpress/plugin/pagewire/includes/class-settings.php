<?php
/**
 * What the settings page keeps.
 *
 * @package Pagewire
 */

namespace Pagewire;

defined( 'ABSPATH' ) || exit;

/** Read-only view of the options; constants in wp-config.php win. */
final class Settings {

	const OPTION = 'pagewire';
	// Apart from the others: no form ever prints it.
	const SECRET = 'pagewire_secret';
	// What is known of the connection: when it last worked, until when to leave it alone.
	const STATE = 'pagewire_state';

	const DEFAULTS = array(
		'endpoint'  => '',
		'site'      => '',
		'connector' => 'wordpress',
		'types'     => array( 'post', 'page' ),
		'shown'     => array(),
		'lang'      => '',
		'markdown'  => false,
		'widget'    => false,
		'visitors'  => '',
		'private'   => false,
	);

	/**
	 * All settings, each of its default's type.
	 *
	 * @return array
	 */
	public function all() {
		$saved = get_option( self::OPTION, array() );
		return array_merge( self::DEFAULTS, is_array( $saved ) ? array_intersect_key( $saved, self::DEFAULTS ) : array() );
	}

	/**
	 * Address of the Pagewire server, without a slash at the end; empty when not set.
	 *
	 * @return string
	 */
	public function endpoint() {
		$endpoint = defined( 'PAGEWIRE_ENDPOINT' ) ? (string) constant( 'PAGEWIRE_ENDPOINT' ) : $this->all()['endpoint'];
		return untrailingslashit( $endpoint );
	}

	/**
	 * Where visitors' browsers find Pagewire, which may not be where this server does.
	 *
	 * @return string
	 */
	public function for_visitors() {
		return untrailingslashit( '' === $this->all()['visitors'] ? $this->endpoint() : $this->all()['visitors'] );
	}

	/**
	 * Whether the endpoint may be in the own network. Whoever writes wp-config.php may do anything; whoever saved the
	 * setting was asked for the right to install plugins, see Admin::sanitize().
	 *
	 * @return bool
	 */
	public function may_be_private() {
		return defined( 'PAGEWIRE_ENDPOINT' ) || $this->all()['private'];
	}

	/**
	 * The signing secret as text, `whsec_...`; empty when not set.
	 *
	 * @return string
	 */
	public function secret() {
		return defined( 'PAGEWIRE_SECRET' ) ? (string) constant( 'PAGEWIRE_SECRET' ) : (string) get_option( self::SECRET, '' );
	}

	/**
	 * The bytes of a secret; null when it is not one.
	 *
	 * @param string $secret As text.
	 * @return string|null
	 */
	public static function key( $secret ) {
		if ( 0 !== strpos( $secret, 'whsec_' ) ) {
			return null;
		}
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- the standard's spelling of a key, nothing is hidden.
		$key = base64_decode( substr( $secret, 6 ), true );
		return false !== $key && strlen( $key ) >= 24 ? $key : null;
	}

	/**
	 * Post types that are sent: chosen, and still visible to visitors.
	 *
	 * @return string[]
	 */
	public function types() {
		return array_values( array_intersect( $this->all()['types'], self::offered() ) );
	}

	/**
	 * Those of them whose pages are read as the theme shows them, not by their content alone.
	 *
	 * @return string[]
	 */
	public function shown() {
		return array_values( array_intersect( $this->all()['shown'], $this->types() ) );
	}

	/**
	 * Post types that may be chosen: whatever has pages of its own for visitors. Attachments are files, not pages.
	 *
	 * @return string[]
	 */
	public static function offered() {
		return array_values( array_diff( array_filter( get_post_types(), 'is_post_type_viewable' ), array( 'attachment' ) ) );
	}

	/**
	 * Whether there is somewhere to send to.
	 *
	 * @return bool
	 */
	public function ready() {
		$all = $this->all();
		return '' !== $this->endpoint() && '' !== $all['site'] && '' !== $all['connector'] && '' !== $this->secret();
	}

	/**
	 * What is known of the connection.
	 *
	 * @return array `tries` in vain, `until` which second to wait, `problem` of the last try, `delivered` and
	 *               `pages` of the last delivery, `retried`: when what was not sent was last tried again.
	 */
	public static function state() {
		$state = get_option( self::STATE, array() );
		$empty = array(
			'tries'     => 0,
			'until'     => 0,
			'problem'   => '',
			'delivered' => 0,
			'pages'     => 0,
			'retried'   => 0,
		);
		return array_merge( $empty, is_array( $state ) ? $state : array() );
	}

	/**
	 * Changes some of it.
	 *
	 * @param array $changes Some keys of state().
	 */
	public static function note( array $changes ) {
		update_option( self::STATE, array_merge( self::state(), $changes ), true );
	}
}
