//! The kernels of back ends whose arithmetic is for narrow primes only: AVX2 and NEON.

/// Methods of [`super::Kernels`] or [`super::KeySwitching`] that call a kernel of the back end's modules where the
/// modulus is narrow, the portable one elsewhere.
///
/// # Safety
/// A value of the back end's type proves that the CPU has the features of its kernels.
macro_rules! narrow_kernels {
    (arithmetic) => {
        fn plan_ntt(&self, log_n: u32, modulus: &Modulus, psi: u64) -> Box<dyn NttPlan> {
            if modulus.is_narrow() {
                ntt::NarrowPlan::new(log_n, modulus, psi)
            } else {
                ScalarPlan::new(log_n, modulus, psi, self.scaled_layout(1 << log_n))
            }
        }

        narrow_kernels! {
            pointwise: mul(m; a: &[u64], b: &[u64], out: &mut [u64]);
            pointwise: mul_add_assign(m; acc: &mut [u64], a: &[u64], b: &[u64]);
            pointwise: mul_scalar_assign(m; a: &mut [u64], w: ShoupFactor);
            pointwise: mul_scalar_add_assign(m; acc: &mut [u64], a: &[u64], w: ShoupFactor);
            pointwise: quotient(m; quotient: &Quotient<'_>, out: &mut [u64]);
        }
    };
    (switching) => {
        fn inner_product(
            &self,
            m: &Modulus,
            digits: &[&[u64]],
            b: &[&[u64]],
            a: &[UniformRow<'_>],
            out_b: &mut [u64],
            out_a: &mut [u64],
        ) {
            if m.is_narrow() {
                // SAFETY: `self` proves the CPU features; so below.
                unsafe { dot::inner_product(m, digits, b, a, out_b, out_a) }
            } else {
                let expand = |seed: &Seed, id, m: &Modulus, start, out: &mut [u64]| {
                    // SAFETY: as above.
                    unsafe { chacha::fill_uniform(seed, id, m, start, out) }
                };
                portable::dot::inner_product(m, digits, b, a, (out_b, out_a), expand);
            }
        }
    };
    ($($module:ident: $kernel:ident($m:ident; $($argument:ident: $type:ty),*);)*) => {
        $(
            fn $kernel(&self, $m: &Modulus, $($argument: $type),*) {
                if $m.is_narrow() {
                    // SAFETY: `self` proves the CPU features.
                    unsafe { $module::$kernel($m, $($argument),*) }
                } else {
                    Portable.$kernel($m, $($argument),*);
                }
            }
        )*
    };
}
pub(super) use narrow_kernels;
