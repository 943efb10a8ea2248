//! A method of an object: its name and the type of its reply.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request that an object answers at `POST /{NAME}`.
pub trait Method: Serialize + DeserializeOwned {
    /// The last part of the address.
    const NAME: &'static str;
    /// What is answered.
    type Reply: Serialize + DeserializeOwned;
}

/// Ties a request type to its method's name and reply.
#[macro_export]
macro_rules! method {
    ($request:ty, $name:literal, $reply:ty) => {
        impl $crate::Method for $request {
            const NAME: &'static str = $name;
            type Reply = $reply;
        }
    };
}
