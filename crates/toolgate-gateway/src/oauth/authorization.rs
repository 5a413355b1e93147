//! What a server elsewhere is shown as proof: nothing, a token of the person's own, or one from a login, which is renewed when the server
//! doesn't take it any more. Of many processes that find out at once, one renews it, since many issuers take a refresh token only once.

use std::sync::Arc;

use toolgate_contract::{EgressPolicy, ToolError, Web};

use super::address::OauthClient;
use super::{ServerToken, TokenStore};

/// What a server is shown as proof.
#[derive(Clone)]
pub(crate) enum Authorization {
    /// A token that configuration leads to.
    Fixed(String),
    /// A token from a login, if there was one.
    Login(Arc<dyn TokenStore>),
}

impl Authorization {
    /// The token for a request.
    pub(crate) async fn token(&self) -> Result<Option<String>, ToolError> {
        match self {
            Self::Fixed(token) => Ok(Some(token.clone())),
            Self::Login(store) => Ok(load(store).await?.map(|token| token.access_token)),
        }
    }

    /// Another token than this one, which the server didn't take; none if only a login brings one.
    pub(crate) async fn renewed(
        &self,
        refused: Option<&str>,
        web: &Arc<dyn Web>,
        egress: &Arc<dyn EgressPolicy>,
    ) -> Result<Option<String>, ToolError> {
        let Self::Login(store) = self else { return Ok(None) };
        let lock = Arc::clone(store);
        let _held = blocking(move || lock.lock()).await?;
        let Some(token) = load(store).await? else { return Ok(None) };
        if Some(token.access_token.as_str()) != refused {
            // Another process renewed it meanwhile.
            return Ok(Some(token.access_token));
        }
        let Some(refresh_token) = token.refresh_token.clone() else { return Ok(None) };
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", refresh_token.as_str()), ("resource", &token.resource)];
        let client = OauthClient { web: web.as_ref(), egress: egress.as_ref() };
        let Ok(renewed) = token.requested(&fields, &client).await else { return Ok(None) };
        let (store, access_token) = (Arc::clone(store), renewed.access_token.clone());
        blocking(move || store.save(&renewed)).await?;
        Ok(Some(access_token))
    }
}

async fn load(store: &Arc<dyn TokenStore>) -> Result<Option<ServerToken>, ToolError> {
    let store = Arc::clone(store);
    blocking(move || store.load()).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(ToolError::internal("The token store failed.")))
}
