use std::collections::{BTreeMap, BTreeSet};

use super::{Basis, Polynomial};
use crate::Arithmetic;

/// The computation of one power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    /// The exponent (the index, in the Chebyshev basis): at least 2.
    pub exponent: usize,
    /// Exponents of its two factors, the larger first.
    pub factors: (usize, usize),
    /// Levels below the (changed) variable.
    pub depth: usize,
}

/// A sum of products with powers and of scaled powers, rescaled once.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Levels of the result below the (changed) variable.
    pub depth: usize,
    /// Quotients and the exponents of the powers that multiply them.
    pub products: Vec<(Node, usize)>,
    /// Scaled powers: exponents and coefficients.
    pub terms: Vec<(usize, f64)>,
    /// The constant added at the end.
    pub constant: f64,
    /// The polynomial that it evaluates, in the basis of the plan.
    pub coefficients: Vec<f64>,
}

/// The whole evaluation of a polynomial before anything runs: no keys, no parameters.
///
/// Of all baby-step sizes the plan has the fewest relinearizations, then the fewest ciphertext products, then the
/// fewest scaled powers.
#[derive(Debug, Clone, PartialEq)]
pub struct PolynomialPlan {
    basis: Basis,
    powers: Vec<Power>,
    root: Option<Node>,
    constant: f64,
}

/// Levels that a polynomial of a degree needs, without a change of variable: `ceil(log2(degree + 1))`.
pub fn degree_depth(degree: usize) -> usize {
    (usize::BITS - degree.leading_zeros()) as usize
}

/// `ceil(log2(k))`: levels that `X^k` needs.
pub(super) fn power_depth(k: usize) -> usize {
    degree_depth(k.saturating_sub(1))
}

impl PolynomialPlan {
    /// Plans the evaluation of a polynomial.
    pub fn new(polynomial: &Polynomial) -> Self {
        let (basis, coefficients) = (polynomial.basis(), polynomial.coefficients());
        let degree = polynomial.degree();
        let depth = degree_depth(degree);
        let constant = coefficients.first().copied().unwrap_or(0.0);
        (1..=depth)
            .map(|log| {
                let root = Node::build(basis, coefficients.to_vec(), depth, 1 << log);
                Self { basis, powers: powers(basis, &root), root: Some(root), constant }
            })
            .min_by_key(|plan| {
                let (products, terms) = plan.root.as_ref().map_or((0, 0), Node::work);
                (plan.relinearizations().len(), products + plan.powers.len(), terms)
            })
            .unwrap_or(Self { basis, powers: Vec::new(), root: None, constant })
    }

    /// The basis of the coefficients.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// Powers in the order of computation.
    pub fn powers(&self) -> &[Power] {
        &self.powers
    }

    /// The whole polynomial; `None` for a constant.
    pub fn root(&self) -> Option<&Node> {
        self.root.as_ref()
    }

    /// Degree of the polynomial; 0 for a constant.
    pub(super) fn root_degree(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.coefficients.len() - 1)
    }

    /// The constant coefficient.
    pub fn constant(&self) -> f64 {
        self.constant
    }

    /// Levels of the change of variable: 1 if it multiplies, else 0.
    pub fn change_depth(&self) -> usize {
        usize::from(self.root.is_some() && self.basis.change_of_variable().0 != 1.0)
    }

    /// Levels from the input to the result: [`degree_depth`], and those of [`Self::change_depth`].
    pub fn depth(&self) -> usize {
        self.change_depth() + self.root.as_ref().map_or(0, |root| root.depth)
    }

    /// For each relinearization, its depth below the input's level, ascending. All of them are merged with a rescaling.
    pub fn relinearizations(&self) -> Vec<usize> {
        let mut offsets: Vec<usize> = self.powers.iter().map(|p| p.depth - 1).collect();
        if let Some(root) = &self.root {
            root.collect(&mut offsets);
        }
        offsets.iter_mut().for_each(|offset| *offset += self.change_depth());
        offsets.sort_unstable();
        offsets
    }

    /// The operations of the evaluation except relinearizations, each with its depth below the input's level.
    pub fn arithmetic(&self) -> Vec<(usize, Arithmetic)> {
        let Some(root) = &self.root else {
            return vec![(0, Arithmetic { visits: 2, ..Arithmetic::constant() })];
        };
        let (_, shift) = self.basis.change_of_variable();
        let mut out = Vec::new();
        if self.change_depth() > 0 {
            out.push((0, Arithmetic::sum(0, 1, false, shift != 0.0)));
        } else if shift != 0.0 {
            out.push((0, Arithmetic::constant()));
        }
        for power in &self.powers {
            let (a, b) = power.factors;
            let step = match self.basis {
                Basis::Monomial => Arithmetic::sum(1, 0, false, false),
                Basis::Chebyshev { .. } => Arithmetic::sum(1, usize::from(a != b), true, a == b),
            };
            out.push((self.change_depth() + power.depth - 1, step));
        }
        root.arithmetic(&mut |below, step| out.push((self.change_depth() + below, step)));
        out
    }
}

impl Node {
    /// A node of at most this depth for coefficients of degree 1 to `2^depth - 1`, whose terms are below `babies`
    /// unless they are single.
    fn build(basis: Basis, coefficients: Vec<f64>, depth: usize, babies: usize) -> Self {
        let mut node = Self {
            depth,
            products: Vec::new(),
            terms: Vec::new(),
            constant: 0.0,
            coefficients: coefficients.clone(),
        };
        let mut rest = coefficients;
        loop {
            while rest.len() > 1 && rest.last() == Some(&0.0) {
                rest.pop();
            }
            let degree = rest.len() - 1;
            let shallow = |(k, &c): (usize, &f64)| c == 0.0 || power_depth(k) < depth;
            if degree < babies && rest.iter().enumerate().skip(1).all(shallow) {
                break;
            }
            let exponent = 1 << degree.ilog2();
            if degree == exponent {
                node.terms.push((exponent, rest[exponent]));
                rest[exponent] = 0.0;
                continue;
            }
            let (quotient, remainder) = divide(basis, &rest, exponent);
            node.products.push((Self::build(basis, quotient, depth - 1, babies), exponent));
            rest = remainder;
        }
        node.terms.extend(rest.iter().copied().enumerate().skip(1).filter(|&(_, c)| c != 0.0));
        node.constant = rest[0];
        node
    }

    /// Offsets of relinearizations below the (changed) variable.
    fn collect(&self, offsets: &mut Vec<usize>) {
        offsets.extend((!self.products.is_empty()).then(|| self.depth - 1));
        self.products.iter().for_each(|(quotient, _)| quotient.collect(offsets));
    }

    /// The operations of each node, and their depth below the (changed) variable.
    fn arithmetic(&self, push: &mut impl FnMut(usize, Arithmetic)) {
        let (products, terms) = (self.products.len(), self.terms.len());
        push(self.depth - 1, Arithmetic::sum(products, terms, false, self.constant != 0.0));
        self.products.iter().for_each(|(quotient, _)| quotient.arithmetic(push));
    }

    /// Ciphertext products and scaled powers.
    fn work(&self) -> (usize, usize) {
        self.products.iter().fold(
            (self.products.len(), self.terms.len()),
            |(products, terms), (quotient, _)| {
                let (p, t) = quotient.work();
                (products + p, terms + t)
            },
        )
    }

    fn exponents(&self, factors: &mut BTreeSet<usize>, scaled: &mut BTreeSet<usize>) {
        scaled.extend(self.terms.iter().map(|&(exponent, _)| exponent));
        for (quotient, exponent) in &self.products {
            factors.insert(*exponent);
            quotient.exponents(factors, scaled);
        }
    }
}

/// Quotient and remainder by `X^g` or `T_g`, for a degree in `g..2g`.
fn divide(basis: Basis, coefficients: &[f64], g: usize) -> (Vec<f64>, Vec<f64>) {
    let (low, high) = coefficients.split_at(g);
    let (mut quotient, mut remainder) = (high.to_vec(), low.to_vec());
    if let Basis::Chebyshev { .. } = basis {
        // T_{g+i} = 2 T_g T_i - T_{g-i}.
        for (i, c) in high.iter().enumerate().skip(1) {
            quotient[i] = 2.0 * c;
            remainder[g - i] -= c;
        }
    }
    (quotient, remainder)
}

/// All powers that a tree needs, each from two that need fewer levels. A greedy choice from the highest power down adds
/// as few others as it can.
fn powers(basis: Basis, root: &Node) -> Vec<Power> {
    let (mut factors, mut needed) = (BTreeSet::new(), BTreeSet::new());
    root.exponents(&mut factors, &mut needed);
    needed.extend(&factors);
    let mut products = BTreeMap::new();
    while let Some(exponent) = needed.pop_last().filter(|&k| k > 1) {
        let depth = power_depth(exponent);
        let largest = 1 << (depth - 1);
        let others = |larger: usize| {
            let smaller = exponent - larger;
            let difference = if basis == Basis::Monomial { 0 } else { larger - smaller };
            [larger, smaller, difference].into_iter().filter(|&k| k > 1).collect::<BTreeSet<_>>()
        };
        let absent = |larger: &usize| others(*larger).iter().filter(|k| !needed.contains(k)).count();
        let larger = (exponent.div_ceil(2)..=largest).min_by_key(absent).unwrap_or(largest);
        needed.extend(others(larger));
        products.insert(exponent, (larger, exponent - larger));
    }
    products
        .into_iter()
        .map(|(exponent, factors)| Power { exponent, factors, depth: power_depth(exponent) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(basis: Basis, degree: usize, step: usize) -> Polynomial {
        let mut state = degree as u64 + 1;
        let coefficients = (0..=degree)
            .map(|k| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let value = (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
                if (degree - k).is_multiple_of(step) { value } else { 0.0 }
            })
            .collect();
        Polynomial::new(basis, coefficients).unwrap()
    }

    /// Runs the plan on a number, checking depths on the way.
    fn run(plan: &PolynomialPlan, x: f64) -> f64 {
        let (w, t) = plan.basis.change_of_variable();
        // Value and depth.
        let mut powers = BTreeMap::from([(1, (w * x + t, 0))]);
        for power in &plan.powers {
            let (a, b) = power.factors;
            let ((va, da), (vb, db)) = (powers[&a], powers[&b]);
            assert_eq!(a + b, power.exponent, "{power:?}");
            assert_eq!(da.max(db) + 1, power.depth);
            let value = match plan.basis {
                Basis::Monomial => va * vb,
                Basis::Chebyshev { .. } => 2.0 * va * vb - if a == b { 1.0 } else { powers[&(a - b)].0 },
            };
            powers.insert(power.exponent, (value, power.depth));
        }
        fn node_value(node: &Node, powers: &BTreeMap<usize, (f64, usize)>) -> f64 {
            let mut sum = node.constant;
            for (quotient, exponent) in &node.products {
                let (value, depth) = powers[exponent];
                assert!(quotient.depth < node.depth && depth < node.depth);
                sum += node_value(quotient, powers) * value;
            }
            for (exponent, c) in &node.terms {
                let (value, depth) = powers[exponent];
                assert!(depth < node.depth && *c != 0.0);
                sum += c * value;
            }
            sum
        }
        plan.root.as_ref().map_or(plan.constant, |root| node_value(root, &powers))
    }

    #[test]
    fn plans_evaluate_their_polynomial_in_the_fewest_levels() {
        for basis in
            [Basis::Monomial, Basis::Chebyshev { a: -1.0, b: 1.0 }, Basis::Chebyshev { a: -3.0, b: 2.0 }]
        {
            for degree in 0..=255 {
                for step in [1, 2, 3] {
                    let polynomial = random(basis, degree, step);
                    let plan = PolynomialPlan::new(&polynomial);
                    let levels = (degree as f64 + 1.0).log2().ceil() as usize;
                    assert_eq!(plan.depth() - plan.change_depth(), levels);
                    for x in [-1.0, -0.3, 0.7] {
                        let (value, expected) = (run(&plan, x), polynomial.value(x));
                        // Recursion by doubling loses at most about degree^2 units of every T_k.
                        let slack = 1e-15 * (degree * degree + 10) as f64 * (degree + 1) as f64;
                        assert!(
                            (value - expected).abs() <= slack,
                            "{basis:?} {degree} {step}: {value} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn relinearizations_are_few_and_counted() {
        let count = |degree, step| {
            let basis = Basis::Chebyshev { a: -1.0, b: 1.0 };
            PolynomialPlan::new(&random(basis, degree, step)).relinearizations()
        };
        assert_eq!(count(1, 1), []);
        assert_eq!(count(2, 1), [0]);
        // T_2, and the root.
        assert_eq!(count(3, 1), [0, 1]);
        // The leading coefficients of degree 2^d - 1 leave only one choice: d - 1 powers and d - 1 sums.
        for (degree, products) in [(7, 4), (15, 7), (31, 10), (63, 15), (127, 20)] {
            assert_eq!(count(degree, 1).len(), products, "degree {degree}");
        }
        // The other counts agree with these.
        let [monomial, chebyshev] = [Basis::Monomial, Basis::Chebyshev { a: -3.0, b: 2.0 }];
        for (basis, degree, step) in [(monomial, 30, 1), (chebyshev, 63, 2), (chebyshev, 1, 1)] {
            let plan = PolynomialPlan::new(&random(basis, degree, step));
            let arithmetic = plan.arithmetic();
            let mut merged: Vec<usize> =
                arithmetic.iter().filter(|(_, step)| step.merged == 1).map(|(below, _)| *below).collect();
            merged.sort_unstable();
            assert_eq!(merged, plan.relinearizations());
            let rescaled = arithmetic.iter().filter(|(_, step)| step.rescaled == 2).count();
            assert_eq!(rescaled + merged.len(), arithmetic.len());
            assert!(arithmetic.iter().all(|(below, _)| *below < plan.depth()));
        }
        // Odd polynomials need even powers only as factors of others.
        for (degree, products) in [(31, 10), (63, 14), (127, 19)] {
            assert_eq!(count(degree, 2).len(), products, "odd, degree {degree}");
        }
    }
}
