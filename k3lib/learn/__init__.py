"""For trainers: worked problems whose numbers and answers follow from parameters."""
