package emil;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.TreeMap;

/** Exercise 8: the most frequent words of a text. */
public class Words {
    public static void main(String[] args) throws IOException {
        int wanted = args.length > 0 ? Integer.parseInt(args[0]) : 10;
        Map<String, Integer> counts = new TreeMap<>();
        try (BufferedReader reader = new BufferedReader(new InputStreamReader(System.in))) {
            String line;
            while ((line = reader.readLine()) != null) {
                for (String word : line.toLowerCase().split("\\W+")) {
                    if (word.length() > 3) {
                        counts.put(word, counts.containsKey(word) ? counts.get(word) + 1 : 1);
                    }
                }
            }
        }
        counts.entrySet().stream()
            .sorted((a, b) -> b.getValue() - a.getValue())
            .limit(wanted)
            .forEach(entry -> System.out.printf("%5d %s%n", entry.getValue(), entry.getKey()));
    }
}
