<?php
/**
 * Plugin Name: Silas chat
 * Description: Shows the chat of your silas_platform installation, and tells it who is logged in.
 * Version: 0.1.0
 * Requires at least: 6.0
 * Requires PHP: 7.4
 * License: Apache-2.0
 * Text Domain: silas-chat
 */

defined( 'ABSPATH' ) || exit;

const SILAS_CHAT_OPTION = 'silas_chat';
const SILAS_CHAT_SECONDS = 600;

/** The settings, each a text: host, deployment, key_id, secret. */
function silas_chat_settings() {
	$saved = get_option( SILAS_CHAT_OPTION, array() );
	return array_merge(
		array( 'host' => '', 'deployment' => '', 'key_id' => '', 'secret' => '' ),
		is_array( $saved ) ? $saved : array()
	);
}

/** The loader in the footer of every page; the identity script only where a secret is set and somebody is logged in. */
function silas_chat_footer() {
	$settings = silas_chat_settings();
	if ( ! $settings['host'] || ! $settings['deployment'] ) {
		return;
	}
	if ( $settings['secret'] && is_user_logged_in() ) {
		// The token is asked for by script: a page that is cached for everybody must never hold one.
		printf(
			'<script src="%s" data-identity-url="%s" async></script>' . "\n",
			esc_url( plugins_url( 'silas-identity.js', __FILE__ ) ),
			esc_url( admin_url( 'admin-ajax.php?action=silas_identity' ) )
		);
	}
	printf(
		'<script src="%s" data-deployment="%s" async></script>' . "\n",
		esc_url( untrailingslashit( $settings['host'] ) . '/widget/v1/loader.js' ),
		esc_attr( $settings['deployment'] )
	);
}
add_action( 'wp_footer', 'silas_chat_footer' );

function silas_chat_base64url( $bytes ) {
	return rtrim( strtr( base64_encode( $bytes ), '+/', '-_' ), '=' );
}

/** A token for this user, signed with HS256: `sub` is their id here, as the site's own customer id. */
function silas_chat_token( $user, $settings ) {
	$now    = time();
	$header = array( 'alg' => 'HS256', 'typ' => 'JWT' );
	if ( $settings['key_id'] ) {
		$header['kid'] = $settings['key_id'];
	}
	$claims = array(
		'sub'   => (string) $user->ID,
		'aud'   => $settings['deployment'],
		'name'  => mb_substr( trim( $user->display_name ), 0, 120 ),
		'iat'   => $now,
		'exp'   => $now + SILAS_CHAT_SECONDS,
	);
	/** Lets a site add claims, such as `email` if it has confirmed the address, or use another id as `sub`. */
	$claims = apply_filters( 'silas_chat_claims', $claims, $user );
	$signed = silas_chat_base64url( wp_json_encode( $header ) ) . '.' . silas_chat_base64url( wp_json_encode( $claims ) );
	return $signed . '.' . silas_chat_base64url( hash_hmac( 'sha256', $signed, $settings['secret'], true ) );
}

/**
 * Answers the logged-in user's own browser. Other sites can't read it: the answer has no CORS header, and it changes
 * nothing.
 */
function silas_chat_identity() {
	nocache_headers();
	$settings = silas_chat_settings();
	if ( ! $settings['secret'] ) {
		wp_send_json( array( 'token' => '' ), 404 );
	}
	wp_send_json( array( 'token' => silas_chat_token( wp_get_current_user(), $settings ) ) );
}
add_action( 'wp_ajax_silas_identity', 'silas_chat_identity' );

/** An empty secret keeps the saved one, which is never shown again. */
function silas_chat_sanitize( $given ) {
	$given = is_array( $given ) ? $given : array();
	$saved = silas_chat_settings();
	$host  = esc_url_raw( trim( $given['host'] ?? '' ), array( 'https', 'http' ) );
	return array(
		'host'       => untrailingslashit( $host ),
		'deployment' => sanitize_text_field( $given['deployment'] ?? '' ),
		'key_id'     => sanitize_text_field( $given['key_id'] ?? '' ),
		'secret'     => '' === ( $given['secret'] ?? '' ) ? $saved['secret'] : trim( $given['secret'] ),
	);
}

add_action(
	'admin_init',
	function () {
		register_setting( SILAS_CHAT_OPTION, SILAS_CHAT_OPTION, array( 'sanitize_callback' => 'silas_chat_sanitize' ) );
	}
);

add_action(
	'admin_menu',
	function () {
		add_options_page( 'Silas chat', 'Silas chat', 'manage_options', 'silas-chat', 'silas_chat_page' );
	}
);

function silas_chat_page() {
	$settings = silas_chat_settings();
	$fields   = array(
		'host'       => array( __( 'Address of your installation', 'silas-chat' ), 'url', $settings['host'] ),
		'deployment' => array( __( 'Deployment key', 'silas-chat' ), 'text', $settings['deployment'] ),
		'key_id'     => array( __( 'Identity key ID (optional)', 'silas-chat' ), 'text', $settings['key_id'] ),
		'secret'     => array( __( 'Identity secret (HS256, optional)', 'silas-chat' ), 'password', '' ),
	);
	echo '<div class="wrap"><h1>' . esc_html__( 'Silas chat', 'silas-chat' ) . '</h1><form method="post" action="options.php">';
	settings_fields( SILAS_CHAT_OPTION );
	echo '<table class="form-table" role="presentation">';
	foreach ( $fields as $name => list( $label, $type, $value ) ) {
		printf(
			'<tr><th scope="row"><label for="silas-%1$s">%2$s</label></th><td><input class="regular-text" id="silas-%1$s" name="%3$s[%1$s]" type="%4$s" value="%5$s" autocomplete="off"></td></tr>',
			esc_attr( $name ),
			esc_html( $label ),
			esc_attr( SILAS_CHAT_OPTION ),
			esc_attr( $type ),
			esc_attr( $value )
		);
	}
	echo '</table>';
	submit_button();
	echo '</form></div>';
}
