//! DELETE of the legacy revisions: the end of a session.

use http::StatusCode;

use super::fields::Fields;
use super::http_response::HttpResponse;
use super::http_server::HttpServer;

impl HttpServer {
    /// Ends the session that the request names.
    pub(super) async fn handle_delete(&self, fields: &Fields<'_>) -> Result<HttpResponse, HttpResponse> {
        let (http_session, _) = self.bodiless_session(fields).await?;
        match &self.sharing {
            Some(sharing) => sharing.end_session(&http_session).await?,
            None => self.sessions.end_session(&http_session),
        }
        Ok(HttpResponse::empty_response(StatusCode::NO_CONTENT))
    }
}
