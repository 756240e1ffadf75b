//! Copies of a portable function for wider instruction sets, chosen at run time.
//!
//! The bodies are plain Rust that LLVM vectorises. They use no fused multiply-add, so every copy rounds alike, and an
//! encoding has the same bits on every machine.

use keywright_ring::BackendKind;

/// Proof that this CPU supports an instruction set.
///
/// # Invariant
/// The kind is one that [`Isa::at_most`] found on this CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Isa(BackendKind);

impl Isa {
    /// The widest instruction set of this CPU that is not wider than `kind`.
    pub(super) fn at_most(kind: BackendKind) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512dq")
                && std::is_x86_feature_detected!("avx512vl");
            if kind == BackendKind::Avx512 && avx512 {
                return Self(BackendKind::Avx512);
            }
            if kind != BackendKind::Portable && std::is_x86_feature_detected!("avx2") {
                return Self(BackendKind::Avx2);
            }
        }
        let _ = kind;
        Self(BackendKind::Portable)
    }

    #[inline(always)]
    pub(super) fn kind(self) -> BackendKind {
        self.0
    }
}

/// Defines a function that takes an [`Isa`] first and runs the copy of its body compiled for it.
macro_rules! dispatched {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name(isa: $crate::encoder::dispatch::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn portable($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                portable($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                portable($($arg),*)
            }

            match isa.kind() {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: by the invariant of `Isa`, this CPU has avx512f, avx512dq and avx512vl.
                keywright_ring::BackendKind::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: by the invariant of `Isa`, this CPU has avx2.
                keywright_ring::BackendKind::Avx2 => unsafe { avx2($($arg),*) },
                _ => portable($($arg),*),
            }
        }
    };
}
pub(super) use dispatched;
