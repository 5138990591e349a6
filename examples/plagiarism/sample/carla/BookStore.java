package carla;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** Exercise 7. A loan is a record of its own, so a return needs no search. */
public final class BookStore {
    /** One copy in somebody's hands. */
    public record Loan(String title, String reader, long number) implements Comparable<Loan> {
        @Override
        public int compareTo(Loan other) {
            return Long.compare(number, other.number);
        }
    }

    private final Map<String, Integer> free = new LinkedHashMap<>();
    private final TreeSet<Loan> loans = new TreeSet<>();
    private long nextNumber = 1;

    public BookStore stock(String title, int copies) {
        free.compute(title, (key, before) -> (before == null ? 0 : before) + copies);
        return this;
    }

    public Optional<Loan> borrow(String title, String reader) {
        Integer left = free.get(title);
        if (left == null || left < 1) return Optional.empty();
        free.replace(title, left - 1);
        var loan = new Loan(title, reader, nextNumber++);
        loans.add(loan);
        return Optional.of(loan);
    }

    public void end(Loan loan) {
        if (!loans.remove(loan)) throw new IllegalArgumentException("unknown loan " + loan);
        free.merge(loan.title(), 1, Integer::sum);
    }

    public String titlesOf(String reader) {
        return loans.stream()
            .filter(loan -> loan.reader().equals(reader))
            .map(Loan::title)
            .sorted()
            .collect(Collectors.joining(", "));
    }

    public Optional<String> favourite() {
        return loans.stream()
            .collect(Collectors.groupingBy(Loan::title, Collectors.counting()))
            .entrySet().stream()
            .max(Map.Entry.comparingByValue())
            .map(Map.Entry::getKey);
    }
}
