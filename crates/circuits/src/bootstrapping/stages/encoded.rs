/// A stage that multiplies by matrices, with their diagonals encoded: `$stage` of `$plan`, whose module encodes them.
macro_rules! encoded_stage {
    ($stage:ident, $plan:ident) => {
        /// The stage with its diagonals encoded.
        #[derive(Debug)]
        pub struct $stage {
            parameters: CkksParameters,
            plan: $plan,
            transforms: Transforms,
        }

        impl $stage {
            /// Encodes the diagonals of a plan.
            ///
            /// # Errors
            /// As [`LinearTransform::new`].
            pub fn new(parameters: &CkksParameters, plan: &$plan) -> Result<Self, CircuitError> {
                Self::with_storage(parameters, plan, Some(Storage::Encoded))
            }

            /// The stage with its diagonals kept in one form, or made for each use.
            ///
            /// # Errors
            /// As [`LinearTransform::with_steps`], for diagonals that are kept.
            pub fn with_storage(
                parameters: &CkksParameters,
                plan: &$plan,
                kept: Option<Storage>,
            ) -> Result<Self, CircuitError> {
                let encoded = |i, storage| encode(parameters, plan, i, storage);
                let transforms = Transforms::new(kept, plan.factors.len(), encoded)?;
                Ok(Self { parameters: parameters.clone(), plan: plan.clone(), transforms })
            }

            /// The plan.
            pub fn plan(&self) -> &$plan {
                &self.plan
            }

            /// Bytes of the kept diagonals.
            pub fn bytes(&self) -> usize {
                self.transforms.bytes()
            }
        }
    };
}

pub(super) use encoded_stage;
