//! Methods of back ends, by their names alone.

/// Methods of the traits of [`super::Backend`] that return nothing: for each its name, its arguments and its work. The
/// types of the arguments are here.
macro_rules! methods {
    ($($name:ident($this:ident $(, $argument:ident)*) => $work:expr;)*) => {
        $(methods!(@ $name [$this $($argument)*] $work);)*
    };
    (@ add_assign $($rest:tt)*) => { methods!(# add_assign [&Modulus, &mut [u64], &[u64]] $($rest)*); };
    (@ sub_assign $($rest:tt)*) => { methods!(# sub_assign [&Modulus, &mut [u64], &[u64]] $($rest)*); };
    (@ neg_assign $($rest:tt)*) => { methods!(# neg_assign [&Modulus, &mut [u64]] $($rest)*); };
    (@ mul $($rest:tt)*) => { methods!(# mul [&Modulus, &[u64], &[u64], &mut [u64]] $($rest)*); };
    (@ mul_add_assign $($rest:tt)*) => {
        methods!(# mul_add_assign [&Modulus, &mut [u64], &[u64], &[u64]] $($rest)*);
    };
    (@ mul_scalar_assign $($rest:tt)*) => {
        methods!(# mul_scalar_assign [&Modulus, &mut [u64], ShoupFactor] $($rest)*);
    };
    (@ mul_scalar_add_assign $($rest:tt)*) => {
        methods!(# mul_scalar_add_assign [&Modulus, &mut [u64], &[u64], ShoupFactor] $($rest)*);
    };
    (@ quotient $($rest:tt)*) => {
        methods!(# quotient [&Modulus, &$crate::backend::Quotient<'_>, &mut [u64]] $($rest)*);
    };
    (@ lift_small $($rest:tt)*) => { methods!(# lift_small [&Modulus, &[i64], &mut [u64]] $($rest)*); };
    (@ permute $($rest:tt)*) => {
        methods!(# permute [&$crate::Automorphism, &[u64], &mut [u64]] $($rest)*);
    };
    (@ derive_terms $($rest:tt)*) => {
        methods!(# derive_terms [&$crate::conversion::Decomposer, &[&[u64]], &mut [u64]] $($rest)*);
    };
    (@ inner_product $($rest:tt)*) => {
        methods!(# inner_product [
            &Modulus, &[&[u64]], &[&[u64]], &[$crate::backend::UniformRow<'_>], &mut [u64], &mut [u64]
        ] $($rest)*);
    };
    (@ inner_products $($rest:tt)*) => {
        methods!(# inner_products [
            &Modulus, &[$crate::backend::Term<'_>], usize, bool, [&mut [u64]; 4]
        ] $($rest)*);
    };
    (@ join_halves $($rest:tt)*) => {
        methods!(# join_halves [&[i64], Option<&[i64]>, &mut [i64]] $($rest)*);
    };
    (@ separate_halves $($rest:tt)*) => {
        methods!(# separate_halves [&Modulus, [ShoupFactor; 2], &mut [u64]] $($rest)*);
    };
    (@ expand_part $($rest:tt)*) => {
        methods!(# expand_part [&$crate::Seed, $crate::StreamId, &Modulus, usize, &mut [u64]] $($rest)*);
    };
    (@ key_stream $($rest:tt)*) => { methods!(# key_stream [&[u32; 16], u64, &mut [u64]] $($rest)*); };
    (@ gaussian $($rest:tt)*) => { methods!(# gaussian [&[u64], &mut [i64]] $($rest)*); };
    (@ ternary $($rest:tt)*) => { methods!(# ternary [&[u64], &mut [i64]] $($rest)*); };
    (@ add_words $($rest:tt)*) => { methods!(# add_words [&[&[u8]], &mut [u64]] $($rest)*); };
    (@ add_bytes $($rest:tt)*) => { methods!(# add_bytes [&[&[u8]], &mut [u16]] $($rest)*); };
    (@ fold_sums $($rest:tt)*) => { methods!(# fold_sums [&Modulus, &[&[u16]], &mut [u64]] $($rest)*); };
    (@ write_planes $($rest:tt)*) => {
        methods!(# write_planes [&[u64], &mut [u8], &mut [&mut [u8]]] $($rest)*);
    };
    (# $name:ident [$($type:ty),*] [$this:ident $($argument:ident)*] $work:expr) => {
        fn $name(&$this, $($argument: $type),*) {
            $work;
        }
    };
}

/// Calls a kernel. A reference to the back end proves its CPU features, by the invariant of the back end's type; the
/// method has checked the lengths.
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little", target_feature = "neon")
))]
macro_rules! proven {
    ($call:expr) => {
        // SAFETY: as above.
        unsafe { $call }
    };
}
pub(super) use methods;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little", target_feature = "neon")
))]
pub(super) use proven;
