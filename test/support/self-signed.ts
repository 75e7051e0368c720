/**
 * A certificate for localhost (the name, not its address) without a known signer, valid until 2126, and its key: for servers that must not
 * be trusted. The key is public and protects nothing.
 */
export const SELF_SIGNED = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgzT+B2PadNm1Ow1eO
eV42wVUwajieKJhxli9Eb0QD0A2hRANCAATCnwtCMhamkzhPtR5JUVCJ3hKNN0Ys
jdnbOrBwJplyEWTgtT6iwZEn2K3F3GHxhqGATgW9aMFH7TmFAZYSvzl3
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBlTCCATugAwIBAgIURL3VoZk3FGvsvxBCy0+CdOATNYEwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE0MjYxM1oYDzIxMjYxMDI4
MTQyNjEzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATCnwtCMhamkzhPtR5JUVCJ3hKNN0YsjdnbOrBwJplyEWTgtT6iwZEn
2K3F3GHxhqGATgW9aMFH7TmFAZYSvzl3o2kwZzAdBgNVHQ4EFgQUOGOnLCZWctXg
2RBP5l8m4VsJ/FMwHwYDVR0jBBgwFoAUOGOnLCZWctXg2RBP5l8m4VsJ/FMwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
SAAwRQIhAKGW0NqQ8RmnQ3TVGuM1uAsvbfrZQKyx7Nc526jIOhFoAiAh6HJJj+QU
QmFerV7R75lfLtf+11TAUSmeOTOlSJU7Ig==
-----END CERTIFICATE-----
`,
} as const;
