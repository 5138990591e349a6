package anna;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Exercise 7: a library that lends books. */
public class Library {
    private final Map<String, Integer> copies = new HashMap<>();
    private final Map<String, List<String>> borrowers = new HashMap<>();
    private int lendings;

    /** Adds copies of a book. */
    public void add(String title, int count) {
        if (count <= 0) {
            throw new IllegalArgumentException("count is " + count);
        }
        copies.merge(title, count, Integer::sum);
    }

    /** Lends a copy, or says that there is none left. */
    public boolean lend(String title, String reader) {
        int left = copies.getOrDefault(title, 0);
        if (left == 0) {
            return false;
        }
        copies.put(title, left - 1);
        borrowers.computeIfAbsent(title, key -> new ArrayList<>()).add(reader);
        lendings++;
        return true;
    }

    /** Takes a copy back. */
    public void giveBack(String title, String reader) {
        List<String> readers = borrowers.get(title);
        if (readers == null || !readers.remove(reader)) {
            throw new IllegalStateException(reader + " does not have " + title);
        }
        copies.put(title, copies.get(title) + 1);
    }

    /** The titles that a reader has, in no order. */
    public List<String> titlesOf(String reader) {
        List<String> titles = new ArrayList<>();
        for (Map.Entry<String, List<String>> entry : borrowers.entrySet()) {
            for (String each : entry.getValue()) {
                if (each.equals(reader)) {
                    titles.add(entry.getKey());
                }
            }
        }
        return titles;
    }

    /** The book that most readers have now, null when nobody has any. */
    public String favourite() {
        String best = null;
        int most = 0;
        for (String title : borrowers.keySet()) {
            int count = borrowers.get(title).size();
            if (count > most) {
                most = count;
                best = title;
            }
        }
        return best;
    }

    public int lendings() {
        return lendings;
    }
}
