//! The declaration of a codelet's model.

use super::Monomial;
use serde::{Deserialize, Serialize};

/// How expected durations are computed from samples.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// By footprint: from samples of tasks with the same sizes.
    History,
    /// As `a · sizeᵇ`; by footprint where this gives no estimate.
    Regression,
    /// As `a · sizeᵇ + c`; by footprint where this gives no estimate.
    NonLinear,
    /// As a linear combination of these monomials of the task's parameters, plus an intercept; by footprint where this
    /// gives no estimate.
    Multiple(Vec<Monomial>),
}

impl Kind {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Kind::History => "history",
            Kind::Regression => "regression",
            Kind::NonLinear => "nonlinear",
            Kind::Multiple(_) => "multiple",
        }
    }
}

/// A codelet's performance model: its name, under which it is stored, and its kind.
///
/// ```
/// use sched_model::{Kind, Model, Monomial};
/// let gemm = Model::multiple("gemm", [Monomial::from([1, 1, 1]), Monomial::from([1, 1, 0])]);
/// assert_eq!((gemm.symbol(), gemm.kind().name()), ("gemm", "multiple"));
/// assert_eq!(Model::history("potrf").kind(), &Kind::History);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    symbol: String,
    kind: Kind,
}

impl Model {
    fn new(symbol: impl Into<String>, kind: Kind) -> Model {
        Model { symbol: symbol.into(), kind }
    }

    /// A model by footprint, for codelets that run on few different sizes.
    pub fn history(symbol: impl Into<String>) -> Model {
        Model::new(symbol, Kind::History)
    }

    /// A model `a · sizeᵇ`, for codelets that run on many sizes.
    pub fn regression(symbol: impl Into<String>) -> Model {
        Model::new(symbol, Kind::Regression)
    }

    /// A model `a · sizeᵇ + c`, for codelets that run on many sizes, some of them small.
    pub fn nonlinear(symbol: impl Into<String>) -> Model {
        Model::new(symbol, Kind::NonLinear)
    }

    /// A linear combination of monomials, for codelets whose time depends on more than one number.
    pub fn multiple(symbol: impl Into<String>, monomials: impl IntoIterator<Item = Monomial>) -> Model {
        Model::new(symbol, Kind::Multiple(monomials.into_iter().collect()))
    }

    /// A model of the given kind.
    pub fn of_kind(symbol: impl Into<String>, kind: Kind) -> Model {
        Model::new(symbol, kind)
    }

    /// The name under which it is stored. Codelets with the same name share the model.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }
}
