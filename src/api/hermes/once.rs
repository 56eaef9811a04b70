//! Whether a request was carried out before under its key: then nothing of it is
//! checked against how things are by now.

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::store::Once;

pub(super) async fn is_known(caller: &Caller, once: &Option<Once>) -> Result<bool, Failure> {
    if once.is_none() {
        return Ok(false);
    }
    let scope = caller.scope.clone().once(once.clone());
    let known = scope.read(|mut rows| Box::pin(async move { rows.is_known().await }));
    Ok(known.await?)
}
