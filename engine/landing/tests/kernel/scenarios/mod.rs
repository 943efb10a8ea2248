//! Stories, check by check: each says one promise, and fails when the check behind it is switched off.

pub mod accepting;
pub mod acts;
pub mod landing;
pub mod proof;
pub mod turns;

/// Every story by name, for the mutants.
pub fn all() -> Vec<(&'static str, fn())> {
    [landing::ALL, proof::ALL, accepting::ALL, acts::ALL, turns::ALL].concat()
}

/// A list of the tests of a module.
#[macro_export]
macro_rules! stories {
    ($($(#[$doc:meta])* fn $name:ident() $body:block)*) => {
        pub const ALL: &[(&str, fn())] = &[$((stringify!($name), $name as fn())),*];
        $($(#[$doc])* #[test] pub fn $name() $body)*
    };
}
