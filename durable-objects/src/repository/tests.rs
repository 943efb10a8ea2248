mod landing;
mod pushing;
mod submitting;
mod world;
