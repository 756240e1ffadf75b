//! What objects of both schemes share.

/// The record of parameters, which are all descriptor. Reading does not check them; the constructor of the parameters
/// that they describe does. `$rlwe` gives the literal whose identity they have.
macro_rules! literal {
    ($literal:ty as $kind:ident, identified by $rlwe:expr) => {
        impl $crate::object::Context<$literal> for () {
            fn literal<'a>(&'a self, literal: &'a $literal) -> &'a keywright_rlwe::ParametersLiteral {
                let rlwe: fn(&$literal) -> &keywright_rlwe::ParametersLiteral = $rlwe;
                rlwe(literal)
            }
        }

        impl $crate::object::Record for $literal {
            type Context = ();
            type Descriptor = Self;
            const KIND: $crate::Kind = $crate::Kind::$kind;

            fn descriptor(&self, (): &()) -> Result<Self, $crate::WireError> {
                Ok(self.clone())
            }

            fn body_len(_: &Self, (): &()) -> Result<u64, $crate::WireError> {
                Ok(0)
            }

            fn write_body<W: std::io::Write>(
                &self,
                _: &mut $crate::stream::body::BodyWriter<W>,
                (): &(),
            ) -> Result<(), $crate::WireError> {
                Ok(())
            }

            fn read_body<R: std::io::Read>(
                descriptor: Self,
                _: &mut $crate::stream::body::BodyReader<R>,
                (): &(),
            ) -> Result<Self, $crate::WireError> {
                Ok(descriptor)
            }
        }

        impl $crate::Wire for $literal {}
    };
}

/// The record of a scheme's ciphertext: that of its RLWE ciphertext `$field`, with a descriptor of further fields, one
/// of which has to fit the parameters.
macro_rules! ciphertext {
    (
        $ciphertext:ident as $kind:ident of $parameters:ident, with $field:ident: $rlwe:ident;
        $descriptor:ident { $fit:ident $(, $other:ident)* } from |$this:ident| $from:expr;
        $($part:ident = $value:expr),+
    ) => {
        impl $crate::object::Record for $ciphertext {
            type Context = $parameters;
            type Descriptor = $descriptor;
            const KIND: $crate::Kind = $crate::Kind::$kind;

            fn key(&self) -> keywright_rlwe::KeyIdentity {
                self.$field.key
            }

            fn descriptor(&self, parameters: &$parameters) -> Result<$descriptor, $crate::WireError> {
                let (own, rlwe) = (self.parameters.rlwe(), parameters.rlwe());
                own.require_same(rlwe, "the ciphertext", "the parameters it is written for")?;
                let $this = self;
                let ($fit, $($other,)*) = $from;
                Ok($descriptor { rlwe: self.$field.descriptor(rlwe)?, $fit $(, $other)* })
            }

            fn body_len(descriptor: &$descriptor, parameters: &$parameters) -> Result<u64, $crate::WireError> {
                descriptor.$fit.require_fit(parameters)?;
                $rlwe::body_len(&descriptor.rlwe, parameters.rlwe())
            }

            fn write_body<W: std::io::Write>(
                &self,
                body: &mut $crate::stream::body::BodyWriter<W>,
                parameters: &$parameters,
            ) -> Result<(), $crate::WireError> {
                self.$field.write_body(body, parameters.rlwe())
            }

            fn read_body<R: std::io::Read>(
                descriptor: $descriptor,
                body: &mut $crate::stream::body::BodyReader<R>,
                parameters: &$parameters,
            ) -> Result<Self, $crate::WireError> {
                let $descriptor { rlwe, $fit $(, $other)* } = descriptor;
                let $field = $rlwe::read_body(rlwe, body, parameters.rlwe())?;
                Ok(Self { parameters: parameters.clone(), $field, $($part: $value),+ })
            }
        }

        impl $crate::Wire for $ciphertext {}
    };
}

pub(crate) use {ciphertext, literal};
