<?php
/**
 * What this site's requests to itself prove that they are its own with.
 *
 * @package Pagewire
 */

namespace Pagewire;

defined( 'ABSPATH' ) || exit;

/** A pass is the time and a signature: good for a minute, for one purpose, in one site of a network. */
final class Pass {

	const FRESH = 60; // Seconds that one is good for.

	/**
	 * Makes one.
	 *
	 * @param string $purpose What the request is for.
	 * @return string Digits, a hyphen and hexadecimal digits.
	 */
	public static function issue( $purpose ) {
		$time = (string) time();
		return "$time-" . self::signature( $purpose, $time );
	}

	/**
	 * Whether one is ours, for this purpose, and not an old one.
	 *
	 * @param string $purpose What the request is for.
	 * @param string $pass    That came with the request.
	 * @return bool
	 */
	public static function is_good( $purpose, $pass ) {
		return preg_match( '/^(\d{1,11})-([0-9a-f]{64})$/D', $pass, $of )
			&& abs( time() - (int) $of[1] ) <= self::FRESH
			&& hash_equals( self::signature( $purpose, $of[1] ), $of[2] );
	}

	/**
	 * Signs a purpose and a time.
	 *
	 * @param string $purpose What the request is for.
	 * @param string $time    Seconds since 1970.
	 * @return string
	 */
	private static function signature( $purpose, $time ) {
		// All sites of a network have the same salt.
		return hash_hmac( 'sha256', 'pagewire|' . get_current_blog_id() . "|$purpose|$time", wp_salt( 'nonce' ) );
	}
}
