use keywright_rlwe::ParametersLiteral;

use crate::scheme::literal;

literal!(ParametersLiteral as Parameters, identified by |literal| literal);
