mod landing;
mod pushing;
mod submitting;
pub(crate) mod world;
