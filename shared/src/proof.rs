//! What a foot signs to prove that it holds the key behind its id.

/// The bytes that `hello.proof` signs with Ed25519: the protocol name, a newline, the hub's nonce as it was sent.
pub fn signed_bytes(nonce: &str) -> Vec<u8> {
    [crate::version::FOOTBRIDGE_V1.as_bytes(), b"\n", nonce.as_bytes()].concat()
}
