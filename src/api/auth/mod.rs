//! How a caller proves who it is: the text of an API key, or a token that
//! somebody else signed, or one of ours that opens a stream. What a tenant's name or a stored key stands for is
//! the store's to say; nothing here knows HTTP.

pub mod api_key;
pub mod jwks;
pub mod jwt;
pub mod stream_token;
