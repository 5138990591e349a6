package ben;

import java.util.*;

// my own work
public class Rental
{
    private final Map<String, Integer> stock = new HashMap<>();
    private final Map<String, List<String>> customers = new HashMap<>();
    private int total;

    public int getTotal() { return total; }

    // what does this customer have at home?
    public List<String> moviesAtHome(String customer)
    {
        List<String> result = new ArrayList<>();
        for (Map.Entry<String, List<String>> pair : customers.entrySet())
        {
            for (String name : pair.getValue())
            {
                if (name.equals(customer))
                {
                    result.add(pair.getKey());
                }
            }
        }
        return result;
    }

    // rent a movie
    public boolean rent(String movie, String customer)
    {
        int available = stock.getOrDefault(movie, 0);
        if (available == 0)
        {
            System.out.println("Sorry, " + movie + " is out");
            return false;
        }
        stock.put(movie, available - 1);
        customers.computeIfAbsent(movie, m -> new ArrayList<>()).add(customer);
        total++;
        return true;
    }

    // new movies came in
    public void buy(String movie, int number)
    {
        if (number <= 0)
        {
            throw new IllegalArgumentException("bad number: " + number);
        }
        stock.merge(movie, number, Integer::sum);
    }

    // movie comes back
    public void bringBack(String movie, String customer)
    {
        List<String> list = customers.get(movie);
        if (list == null || !list.remove(customer))
        {
            throw new IllegalStateException(customer + " never rented " + movie);
        }
        stock.put(movie, stock.get(movie) + 1);
    }

    // top movie of the week
    public String topMovie()
    {
        String top = null;
        int max = 0;
        for (String movie : customers.keySet())
        {
            int n = customers.get(movie).size();
            if (n > max)
            {
                max = n;
                top = movie;
            }
        }
        return top;
    }
}
