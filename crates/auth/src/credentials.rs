//! This server's own credentials at an issuer, and its question about a token as they have it written (RFC 6749 §2.3.1, RFC
//! 7662 §2.1). All of it is secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};

use crate::{AuthError, Secret};

/// How this server proves to the issuer that it may ask (RFC 6749 §2.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// `client_secret_basic`: in the header.
    #[default]
    Basic,
    /// `client_secret_post`: in the body.
    Post,
}

/// This server, as the issuer knows it.
pub(crate) struct ClientCredentials {
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Last part of the request's body; a secret.
    rest: Secret,
}

impl ClientCredentials {
    pub(crate) fn new(id: &str, secret: &Secret, auth: ClientAuth) -> Result<Self, AuthError> {
        if id.is_empty() {
            let (option, value) = ("the client's id", "empty".to_owned());
            return Err(AuthError::Option {
                option,
                value,
                reason: "the issuer answers only to clients that it knows",
            });
        }
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let mut headers = vec![(CONTENT_TYPE, form)];
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let (id, secret) = (encoded(id), encoded(secret.reveal()));
        let rest = match auth {
            ClientAuth::Basic => {
                let credentials = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
                let unusable = |_| AuthError::Key("the client's credentials fit no header");
                let mut header = HeaderValue::from_str(&credentials).map_err(unusable)?;
                header.set_sensitive(true);
                headers.push((AUTHORIZATION, header));
                String::new()
            }
            ClientAuth::Post => format!("&client_id={id}&client_secret={secret}"),
        };
        Ok(Self { headers, rest: Secret::new(rest) })
    }

    /// The question about a token.
    pub(crate) fn introspection_form(&self, token: &Secret) -> Bytes {
        let token: String = form_urlencoded::byte_serialize(token.reveal().as_bytes()).collect();
        format!("token={token}&token_type_hint=access_token{}", self.rest.reveal()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_written_as_the_rfc_has_them() {
        let secret = Secret::new("p&s:ß");
        let basic = ClientCredentials::new("a b", &secret, ClientAuth::Basic).unwrap();
        let shown = basic.headers[1].1.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(STANDARD.decode(shown).unwrap(), b"a+b:p%26s%3A%C3%9F");
        assert_eq!(basic.introspection_form(&Secret::new("t+k")), "token=t%2Bk&token_type_hint=access_token");
        let post = ClientCredentials::new("a b", &secret, ClientAuth::Post).unwrap();
        assert_eq!(post.headers.len(), 1);
        let form = "token=t&token_type_hint=access_token&client_id=a+b&client_secret=p%26s%3A%C3%9F";
        assert_eq!(post.introspection_form(&Secret::new("t")), form);
        assert!(!format!("{:?}", basic.headers).contains(shown));
    }
}
